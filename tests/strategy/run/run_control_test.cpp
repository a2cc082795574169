#include "autodiff/run_control.h"

#include <atomic>
#include <vector>

#include "palimpsest.h"
#include "tests/catch.h"

namespace palimpsest::run_control_test {
namespace {

using Catch::Matchers::Contains;

/// Some two hundred nodes that are not fused into one.
Var record_chain(Tape& tape, const Tensor& start) {
  Var x = tape.parameter(start);
  for (int i = 0; i < 100; ++i) x = matmul(x, x) * 0.1;
  return sum(x);
}

/// Requests a stop when `count` calls were made.
struct StopAfter {
  std::stop_source source;
  int count;
  int calls = 0;

  RunOptions options(int threads = 1) {
    return {.threads = threads,
            .stop = source.get_token(),
            .progress = on_progress([this](const RunProgress&) {
              if (++calls == count) source.request_stop();
            })};
  }
};

}  // namespace

TEST_CASE("a run stops on request, and the tape can be differentiated again") {
  const Tensor start = Tensor::full({8, 8}, 0.01);
  Tape plain;
  const Gradients expected = backward(record_chain(plain, start));
  for (const int threads : {1, 2}) {
    Tape tape;
    const Var loss = record_chain(tape, start);
    StopAfter stop{.source = {}, .count = 5};
    CHECK_THROWS_WITH(backward(loss, stop.options(threads)), Contains("[run] stopped"));
    CHECK(stop.calls < 20);
    const Gradients again = backward(loss);
    CHECK(same_bits(again.entries()[0].gradient, expected.entries()[0].gradient));
  }
}

TEST_CASE("a token that was stopped before ends every mode at once") {
  std::stop_source source;
  source.request_stop();
  const Tensor start = Tensor::full({8, 8}, 0.01);
  const RunOptions options{.stop = source.get_token()};
  {
    Tape tape;
    const Var loss = record_chain(tape, start);
    CHECK_THROWS_AS(backward(loss, options), StoppedError);
    CHECK_THROWS_AS(evaluate({&loss, 1}, options), StoppedError);
    CHECK(plan_backward(loss, options).schedule.steps.size() > 0);
  }
  Tape eagerly(eager(options));
  CHECK_THROWS_AS(record_chain(eagerly, start), StoppedError);
  Tape hybridly(hybrid(options, {.nodes = 10}));
  CHECK_THROWS_AS(record_chain(hybridly, start), StoppedError);
  Runner runner(Program::gradients([&](Tape& tape) { return record_chain(tape, start); }, options));
  CHECK_THROWS_AS(runner.run(), StoppedError);
  CHECK_THROWS_WITH(runner.gradients(), Contains("has not run"));
  Execution execution({.run = options});
  const ModelFunction model = [](Tape&, std::span<const Var> p, std::span<const Var>) {
    return sum(matmul(p[0], p[0]));
  };
  CHECK_THROWS_AS(execution.gradients(model, {&start, 1}, {}), StoppedError);
}

TEST_CASE("progress counts steps of the schedule up to all of them") {
  for (const int threads : {1, 2}) {
    Tape tape;
    const Var loss = record_chain(tape, Tensor::full({8, 8}, 0.01));
    std::vector<RunProgress> seen;
    const auto note = [&](const RunProgress& progress) { seen.push_back(progress); };
    backward(loss, {.threads = threads, .progress = on_progress(note)});
    REQUIRE(seen.size() > 10);
    CHECK(seen.size() <= 300);
    CHECK(seen.back().steps_done == seen.back().steps);
    for (std::size_t i = 1; i < seen.size(); ++i) {
      CHECK(seen[i].steps == seen[0].steps);
      CHECK(seen[i].loop_steps == 0);
      if (threads == 1) CHECK(seen[i].steps_done > seen[i - 1].steps_done);
    }
  }
}

TEST_CASE("an exception of the callback ends the run") {
  Tape tape;
  const Var loss = record_chain(tape, Tensor::full({8, 8}, 0.01));
  const auto fail = on_progress([](const RunProgress&) { throw FileError("the log is full"); });
  CHECK_THROWS_AS(backward(loss, {.progress = fail}), FileError);
  CHECK(backward(loss).entries().size() == 1);
}

TEST_CASE("loops stop between two steps, forward and backward, and report their steps") {
  const auto record = [](Tape& tape) {
    const Var x = tape.parameter(Tensor::full({4}, 0.5));
    return sum(scan(x, 1000, [](const Var& y, const StepNumber&) { return y - y * y * 0.01; }));
  };
  Tape plain;
  const Gradients expected = backward(record(plain));
  Tape tape;
  const Var loss = record(tape);
  std::vector<RunProgress> seen;
  backward(loss, {.threads = 1, .progress = on_progress([&](const RunProgress& progress) {
                                  if (progress.loop_steps > 0) seen.push_back(progress);
                                })});
  REQUIRE(seen.size() > 100);
  CHECK(seen[1].loop_step == 10);
  CHECK(seen[1].loop_steps == 1000);
  for (const int count : {50, 150}) {  // in the forward part and after it
    Tape stopped;
    const Var again = record(stopped);
    StopAfter stop{.source = {}, .count = count};
    CHECK_THROWS_AS(backward(again, stop.options()), StoppedError);
    CHECK(stop.calls == count);
    CHECK(same_bits(backward(again).entries()[0].gradient, expected.entries()[0].gradient));
  }
}

}  // namespace palimpsest::run_control_test
