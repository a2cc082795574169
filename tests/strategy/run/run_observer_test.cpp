#include "strategy/base/run_observer.h"

#include "tests/catch.h"
//
#include <oneapi/tbb/global_control.h>
#include <rapidcheck.h>
#include <rapidcheck/catch.h>

#include <map>
#include <mutex>

#include "strategy/evaluators/engine.h"
#include "strategy/evaluators/evaluators.h"
#include "tests/strategy/random_program.h"

namespace palimpsest::run_observer_test {
namespace {

const tbb::global_control eight_threads(tbb::global_control::max_allowed_parallelism, 8);

struct Watcher : RunObserver {
  int begun = 0;
  bool refuses = false;
  std::mutex mutex;
  std::map<std::size_t, Tensor> values;  // copies, by target
  std::map<std::size_t, int> steps_before;
  int steps = 0;
  bool twice = false;

  void begin() override {
    ++begun;
    if (refuses) throw ArgumentError("[observer] not now");
  }
  void made(std::size_t target, const Operand& value) override {
    const Tensor copy =
        Tensor(Buffer(std::shared_ptr<void>(), value.data), value.shape(), value.dtype()).clone();
    const std::lock_guard lock(mutex);
    twice = twice || values.contains(target);
    values[target] = copy;
    steps_before[target] = steps;
  }
  void stepped() override {
    const std::lock_guard lock(mutex);
    ++steps;
  }
};

struct Watched {
  std::shared_ptr<EngineEvaluator> evaluator = lazy();
  Tape tape{evaluator};
  Watcher watcher;

  Watched() { evaluator->engine().set_observer(&watcher); }
};

TEST_CASE("an observer gets gradients as they are when the run has ended") {
  rc::prop("at any budget and number of threads, when the step is known too", [] {
    const auto seed = *rc::gen::inRange<std::uint64_t>(1, 1'000'000);
    const int size = *rc::gen::inRange(3, 60);
    const int threads = *rc::gen::element(1, 8);
    const double part = *rc::gen::element(1.0, 0.7, 0.4);
    const AllocationPolicy memory =
        *rc::gen::element(AllocationPolicy::minimal_peak, AllocationPolicy::pooled,
                          AllocationPolicy::standard, AllocationPolicy::cached);
    Watched observed;
    Bytes budget = unlimited;
    for (int step = 0; step < 4; ++step) {
      Watcher& watcher = observed.watcher;
      watcher.values.clear();
      watcher.begun = 0;
      observed.tape.clear();
      const RandomProgram program = record_random(observed.tape, seed, size);
      const RunOptions options{.memory_budget = budget, .threads = threads, .memory = memory};
      try {
        const Gradients gradients = backward(program.loss, options);
        RC_ASSERT(watcher.begun == 1);
        RC_ASSERT(!watcher.twice);
        for (const auto& [target, value] : watcher.values) {
          if (target > gradients.entries().size()) continue;
          const Tensor& expected =
              target == 0 ? gradients.loss() : gradients.entries()[target - 1].gradient;
          RC_ASSERT(same_bits(value, expected));
        }
        budget = static_cast<Bytes>(part * static_cast<double>(gradients.report().keep_all_peak));
      } catch (const BudgetError&) {
        RC_ASSERT(watcher.begun == 0);
        RC_ASSERT(watcher.values.empty());
        return;
      }
    }
  });
}

TEST_CASE("an observer gets a gradient while others are still to be computed") {
  constexpr int layers = 6;
  for (const int threads : {1, 8}) {
    Watched observed;
    Var y = observed.tape.constant(Tensor::uniform({3, 5}, 1));
    for (int layer = 0; layer < layers; ++layer) {
      y = tanh(matmul(y, observed.tape.parameter(Tensor::uniform({5, 5}, 2))));
    }
    backward(sum(y), {.threads = threads});
    Watcher& watcher = observed.watcher;
    REQUIRE(watcher.values.size() == layers + 1);
    for (std::size_t layer = 2; layer <= layers; ++layer) {
      CHECK(watcher.steps_before[layer] < watcher.steps_before[layer - 1]);
    }
  }
}

TEST_CASE("what an observer throws ends the run before it has begun") {
  Watched observed;
  const RandomProgram program = record_random(observed.tape, 7, 30);
  observed.watcher.refuses = true;
  CHECK_THROWS_AS(backward(program.loss), ArgumentError);
  CHECK(observed.watcher.steps == 0);
  observed.watcher.refuses = false;
  const Gradients gradients = backward(program.loss);
  Tape tape;
  const Gradients expected = backward(record_random(tape, 7, 30).loss);
  for (std::size_t i = 0; i < program.parameters.size(); ++i) {
    CHECK(same_bits(gradients.entries()[i].gradient, expected.entries()[i].gradient));
  }
}

TEST_CASE("an observer does not see a run without a backward part") {
  Watched observed;
  const Var x = observed.tape.parameter(Tensor::uniform({4}, 1));
  (x * 2.0).value();
  CHECK(observed.watcher.begun == 0);
  CHECK(observed.watcher.steps == 0);
}

}  // namespace
}  // namespace palimpsest::run_observer_test
