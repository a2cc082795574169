#include "autodiff/run_control.h"

#include <algorithm>
#include <atomic>
#include <functional>
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
    CHECK_THROWS_AS(plan_backward(loss, options), StoppedError);
    CHECK(plan_backward(loss).schedule.steps.size() > 0);
  }
  Tape eagerly(eager(options));
  CHECK_THROWS_AS(record_chain(eagerly, start), StoppedError);
  Tape hybridly(hybrid(options, {.nodes = 10}));
  CHECK_THROWS_AS(record_chain(hybridly, start), StoppedError);
  const auto record = [&](Tape& tape) { return record_chain(tape, start); };
  CHECK_THROWS_AS(Runner(Program::gradients(record, options)), StoppedError);
  std::stop_source later;
  Runner runner(Program::gradients(record, {.stop = later.get_token()}));
  later.request_stop();
  CHECK_THROWS_AS(runner.run(), StoppedError);
  CHECK_THROWS_WITH(runner.gradients(), Contains("the last run failed"));
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

namespace {

/// The identity. Counts its calls, and requests a stop in one of them.
struct Counting {
  std::stop_source source;
  int stops_in = 0;
  int calls = 0;

  CustomOperation operation() {
    const auto copy = [this](const CustomCall& call) {
      if (++calls == stops_in) source.request_stop();
      const std::span<const float> from = call.inputs[0].data<float>();
      std::ranges::copy(from, call.outputs[0].data<float>().begin());
    };
    const CustomOperation back({.name = "back", .forward = copy});
    return CustomOperation({.name = "counting", .forward = copy, .vjp = [=](const Pullback& p) {
                              p.set(0, back({p.adjoint()}));
                            }});
  }
  RunOptions options() const { return {.threads = 1, .stop = source.get_token()}; }
};

using Record = std::function<Var(const Var& x, const CustomOperation& counting)>;

/// Forty calls within one step of the outer program.
const std::vector<Record> nested{
    [](const Var& x, const CustomOperation& counting) {
      return scan(x, 2, [=](const Var& outer, const StepNumber&) {
        return scan(outer, 20, [=](const Var& y, const StepNumber&) { return counting({y}); });
      });
    },
    [](const Var& x, const CustomOperation& counting) {
      return scan(x, 2, [=](const Var& outer, const StepNumber&) {
        Var y = outer;
        for (int i = 0; i < 20; ++i) y = counting({y});
        return y;
      });
    },
    [](const Var& x, const CustomOperation& counting) {
      return checkpoint(
          [=](const Var& y) {
            return scan(y, 40, [=](const Var& z, const StepNumber&) { return counting({z}); });
          },
          x);
    },
    [](const Var& x, const CustomOperation& counting) {
      return checkpoint(
          [=](const Var& y) {
            Var z = y;
            for (int i = 0; i < 40; ++i) z = counting({z});
            return z;
          },
          x);
    }};

}  // namespace

TEST_CASE("loops and checkpoints end within a step, forward and backward") {
  for (const Record& record : nested) {
    Counting counting;
    const CustomOperation operation = counting.operation();
    Tape tape;
    const Var loss = sum(record(tape.parameter(Tensor::full({4}, 0.5)), operation));
    const Gradients expected = backward(loss);
    const int all = counting.calls;
    REQUIRE(all >= 80);
    for (const int stops_in : {7, 60}) {  // in the forward part, and after it
      tape.clear();
      counting = {};
      counting.stops_in = stops_in;
      const Var again = sum(record(tape.parameter(Tensor::full({4}, 0.5)), operation));
      CHECK_THROWS_AS(backward(again, counting.options()), StoppedError);
      CHECK(counting.calls == stops_in);
      counting.stops_in = 0;
      CHECK(same_bits(backward(again).entries()[0].gradient, expected.entries()[0].gradient));
    }
  }
}

TEST_CASE("the progress of a loop inside of a loop is not reported") {
  Tape tape;
  const Var x = tape.parameter(Tensor::full({4}, 0.5));
  const Var y = scan(x, 5, [](const Var& outer, const StepNumber&) {
    return scan(outer, 50, [](const Var& z, const StepNumber&) { return z - z * z * 0.01; });
  });
  std::vector<RunProgress> seen;
  const auto note = [&](const RunProgress& progress) { seen.push_back(progress); };
  evaluate({&y, 1}, {.threads = 1, .progress = on_progress(note)});
  CHECK(seen.size() < 20);
  for (const RunProgress& progress : seen) {
    CHECK((progress.loop_steps == 0 || progress.loop_steps == 5));
    CHECK(progress.steps_done <= progress.steps);
  }
}

namespace {

const std::vector<ExecutionStrategy>& in_pieces() {
  static const std::vector<ExecutionStrategy> strategies{
      {.accumulation = 3, .parallelism = ParallelMode::pipeline, .stages = 2},
      {.accumulation = 3,
       .parallelism = ParallelMode::model_parallel,
       .devices = {Device{}, Device{}}}};
  return strategies;
}

struct Layers {
  std::vector<Tensor> parameters;
  Tensor batch = Tensor::uniform({6, 8}, 1, -1, 1);
  Tensor running = Tensor::zeros({8});

  Layers() {
    for (std::uint64_t k = 0; k < 20; ++k) parameters.push_back(Tensor::normal({8, 8}, k, 0, 0.3));
  }
  Gradients run(Execution& execution) const {
    const ModelFunction loss = [&](Tape& tape, std::span<const Var> p, std::span<const Var> b) {
      Var x = b[0];
      for (const Var& w : p) x = tanh(matmul(x, w));
      tape.update_after_run(running, mean(x, {0}));
      return mean(square(x));
    };
    return execution.gradients(loss, parameters, {&batch, 1});
  }
};

/// Requests a stop, and proposes a schedule.
class StopsPlanning final : public Planner {
 public:
  explicit StopsPlanning(std::stop_source source) : source_(std::move(source)) {}
  std::string name() const override { return "stops"; }
  std::vector<Proposal> propose(const Graph& graph, Bytes budget) const override {
    source_.request_stop();
    return keep_all()->propose(graph, budget);
  }

 private:
  mutable std::stop_source source_;
};

}  // namespace

TEST_CASE("pipelines and devices stop within the run, and count their steps") {
  for (const ExecutionStrategy& strategy : in_pieces()) {
    const Layers layers;
    ExecutionStrategy watched = strategy;
    watched.run.threads = 1;
    std::vector<RunProgress> seen;
    watched.run.progress =
        on_progress([&](const RunProgress& progress) { seen.push_back(progress); });
    Execution whole(watched);
    layers.run(whole);
    REQUIRE(seen.size() > 30);
    CHECK(seen.back().steps_done == seen.back().steps);
    const std::size_t calls = seen.size();

    const Layers other;
    StopAfter stop{.source = {}, .count = 5};
    watched.run = stop.options();
    Execution execution(watched);
    CHECK_THROWS_WITH(other.run(execution), Contains("[run] stopped"));
    CHECK(static_cast<std::size_t>(stop.calls) < calls / 3);
    CHECK(same_bits(other.running, Tensor::zeros({8})));
    CHECK_THROWS_AS(other.run(execution), StoppedError);
  }
}

TEST_CASE("planning stops on request, and what is planned later is unchanged") {
  const Tensor start = Tensor::full({8, 8}, 0.01);
  Tape plain;
  const Gradients expected = backward(record_chain(plain, start));
  std::stop_source source;
  const RunOptions stopping{.planner = std::make_shared<StopsPlanning>(source),
                            .stop = source.get_token()};
  Tape tape;
  const Var loss = record_chain(tape, start);
  CHECK_THROWS_AS(backward(loss, stopping), StoppedError);
  CHECK(tape.node_count() == plain.node_count());
  const RunOptions within{.memory_budget = plan_backward(loss).keep_all_peak / 2};
  const Gradients again = backward(loss, within);
  CHECK(same_bits(again.entries()[0].gradient, expected.entries()[0].gradient));
  // The same planner, which now plans to the end.
  const RunOptions later{.planner = stopping.planner};
  CHECK(same_bits(backward(loss, later).entries()[0].gradient, expected.entries()[0].gradient));
}

TEST_CASE("the planning of pipelines and devices stops on request") {
  for (ExecutionStrategy strategy : in_pieces()) {
    const Layers layers;
    std::stop_source source;
    strategy.gradient = GradientMode::checkpointed;
    strategy.run.planner = std::make_shared<StopsPlanning>(source);
    strategy.run.stop = source.get_token();
    int steps = 0;
    strategy.run.progress = on_progress([&](const RunProgress&) { ++steps; });
    Execution execution(strategy);
    CHECK_THROWS_AS(layers.run(execution), StoppedError);
    CHECK(steps == 0);
    CHECK(same_bits(layers.running, Tensor::zeros({8})));
  }
}

}  // namespace palimpsest::run_control_test
