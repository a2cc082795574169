#include <thread>

#include "checkpoint/buffer_pool.h"
#include "palimpsest.h"
#include "strategy/evaluators/engine.h"
#include "tests/catch.h"

namespace palimpsest::memory_test {
namespace {

TEST_CASE("a pool hands on what dies, by size") {
  const Meter meter;
  BufferPool pool(meter);
  pool.begin(1'000, 0);
  Buffer a = pool.allocate(100);
  const std::byte* const where = a.get();
  CHECK(meter.live() == 100);
  CHECK(pool.peak() == 128);
  a.reset();
  CHECK(meter.live() == 0);
  const Buffer b = pool.allocate(120);
  CHECK(b.get() == where);
  CHECK(meter.allocated(b));
  CHECK(pool.allocations() == 1);
  const Buffer c = pool.allocate(64);
  CHECK(pool.allocations() == 2);
  CHECK(pool.peak() == 192);
}

TEST_CASE("a pool never holds more than a run may") {
  BufferPool pool{Meter()};
  pool.begin(640, 128);
  pool.allocate(256).reset();
  pool.allocate(128).reset();
  CHECK(pool.peak() == 512);
  Buffer large = pool.allocate(320);  // the buffer of 256 bytes is released
  CHECK(pool.peak() == 576);
  pool.release_outside(128);
  const Buffer other = pool.allocate(192);
  CHECK(pool.peak() == 640);
  CHECK(pool.allocations() == 4);
  // A buffer that is held beyond a run belongs to its holder. It returns to the pool if there is
  // room.
  pool.begin(320, 0);
  CHECK(pool.peak() == 128);
  large.reset();
  const Buffer again = pool.allocate(320);
  CHECK(pool.allocations() == 1);
  CHECK(pool.peak() == 320);
}

TEST_CASE("what a pool handed out may outlive it, and come back from any thread") {
  Buffer left;
  {
    BufferPool pool{Meter()};
    pool.begin(unlimited, 0);
    left = pool.allocate(1'000);
    std::vector<std::thread> threads;
    for (int k = 0; k < 4; ++k) {
      threads.emplace_back([&] {
        for (int i = 0; i < 200; ++i) {
          const Buffer one = pool.allocate(64 * (i % 5 + 1));
          one.get()[0] = std::byte{1};
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(pool.allocations() <= 4 * 5 + 1);
  }
  left.get()[999] = std::byte{1};
}

/// Layers whose gradients do not all fit, so that some work is repeated.
Var loss_of(Tape& tape, const Tensor& weights, const Tensor& input) {
  const Var w = tape.parameter(weights);
  Var y = tape.constant(input);
  for (int i = 0; i < 6; ++i) y = tanh(matmul(y, w)) + y * 0.5;
  return sum(y * y);
}

struct Weights {
  Tensor weights = Tensor::uniform({60, 60}, 1, -0.1, 0.1, DType::f64);
  Tensor input = Tensor::uniform({40, 60}, 2, -1, 1, DType::f64);
};

TEST_CASE("memory handling: the same bits, within any budget, on any number of threads") {
  const Weights given;
  Tape all;
  const Var w = loss_of(all, given.weights, given.input);
  const Gradients expected = backward(w, {.threads = 1});
  const auto gradient = [](const Gradients& found) { return found.entries()[0].gradient; };
  for (const AllocationPolicy memory :
       {AllocationPolicy::standard, AllocationPolicy::pooled, AllocationPolicy::minimal_peak}) {
    for (const Bytes budget : {unlimited, Bytes{400'000}, Bytes{220'000}}) {
      for (const int threads : {1, 2}) {
        CAPTURE(name_of(memory), budget, threads);
        const auto evaluator = lazy();
        const Engine& engine = evaluator->engine();
        Tape tape(evaluator);
        std::uint64_t first_allocations = 0;
        for (int step = 0; step < 3; ++step) {
          tape.clear();
          const Var loss = loss_of(tape, given.weights, given.input);
          const Gradients found =
              backward(loss, {.memory_budget = budget, .threads = threads, .memory = memory});
          const Report& report = found.report();
          CHECK(same_bits(gradient(found), gradient(expected)));
          CHECK(report.memory == memory);
          CHECK(report.measured_peak <= report.predicted_peak);
          CHECK(report.predicted_peak <= budget);
          if (step == 0) first_allocations = report.allocations;
          if (memory == AllocationPolicy::minimal_peak) CHECK(report.allocations == 0);
          if (memory == AllocationPolicy::standard) CHECK(report.allocations > 20);
          if (memory == AllocationPolicy::pooled && threads == 1) {
            CHECK(report.allocations <= first_allocations);
          }
          // The caller takes the loss and the gradient from the pool each time.
          if (memory == AllocationPolicy::pooled && step == 2 && threads == 1 &&
              budget == unlimited) {
            CHECK(report.allocations <= 2);
          }
        }
        CHECK(engine.meter().live() <= 2 * (60 * 60 + 1) * 8);
      }
    }
  }
}

TEST_CASE("memory handling: programs, and what runners give out") {
  const Weights given;
  const auto record = [&](Tape& tape) { return loss_of(tape, given.weights, given.input); };
  Runner usual(Program::gradients(record));
  usual.run();
  const Gradients expected = usual.gradients();
  for (const AllocationPolicy memory : {AllocationPolicy::standard, AllocationPolicy::pooled}) {
    Runner runner(Program::gradients(record, {.memory = memory}));
    runner.run();
    const Tensor held = runner.gradients().entries()[0].gradient;
    const Tensor copy = held.clone();
    runner.run();
    CHECK(same_bits(held, copy));
    CHECK(same_bits(runner.gradients().entries()[0].gradient, expected.entries()[0].gradient));
    CHECK(runner.report().memory == memory);
    CHECK(runner.report().allocations > 0);
  }
}

TEST_CASE("memory handling: values that are present count") {
  for (const AllocationPolicy memory : {AllocationPolicy::standard, AllocationPolicy::pooled}) {
    Tape tape;
    const Var x = tape.parameter(Tensor::full({1'000}, 0.5, DType::f64));
    Var y = x;
    for (int i = 0; i < 6; ++i) y = cumsum(sin(y), 0);
    const Var held[] = {y, x * 2.0};
    evaluate(held, {.memory = memory});
    const Report report =
        backward(sum(y * y), {.memory_budget = 60'000, .memory = memory}).report();
    CHECK(report.measured_peak >= 16'000);
    CHECK(report.measured_peak <= report.predicted_peak);
    CHECK(report.predicted_peak <= 60'000);
  }
}

TEST_CASE("memory handling: a kernel that fails leaves nothing behind") {
  const CustomOperation broken{{.name = "broken", .forward = [](const CustomCall&) {
                                  throw std::runtime_error("broken kernel");
                                }}};
  for (const AllocationPolicy memory : {AllocationPolicy::standard, AllocationPolicy::pooled}) {
    const auto evaluator = lazy({.memory = memory});
    const Engine& engine = evaluator->engine();
    Tape tape(evaluator);
    const Var x = tape.parameter(Tensor::full({1'000}, 0.5));
    const Var y = broken({cumsum(sin(x), 0)});
    CHECK_THROWS_AS(y.value(), std::runtime_error);
    CHECK(engine.meter().live() == 0);
    CHECK(sum(sin(x)).item() > 0);
  }
}

}  // namespace
}  // namespace palimpsest::memory_test
