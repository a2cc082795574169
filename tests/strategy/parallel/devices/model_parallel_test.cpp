#include <oneapi/tbb/global_control.h>
#include <rapidcheck.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>

#include "tests/strategy/execution/random_model.h"
#include "tests/strategy/parallel/devices/devices.h"
#include "tests/strategy/trace_events.h"
#include "tests/temporary_file.h"

namespace palimpsest::model_parallel_test {
namespace {

using Catch::Matchers::Contains;

struct SomeThreads {
  tbb::global_control control{tbb::global_control::max_allowed_parallelism, 4};
};

/// A loop with one state, between layers.
SmallModel looping() {
  return {"loop",
          {Tensor::normal({8, 8}, 1, 0, 0.3), Tensor::normal({8, 8}, 2, 0, 0.3)},
          {Tensor::uniform({6, 8}, 3, -1, 1)},
          [](Tape&, std::span<const Var> p, std::span<const Var> batch) {
            const Var start = tanh(matmul(batch[0], p[0]));
            const Var end = scan(start, 7, [&](const Var& state, const StepNumber&) {
              return tanh(matmul(state, p[1]));
            });
            return mean(matmul(end, p[0]) * start);
          }};
}

std::vector<SmallModel> models() {
  return {two_towers(), perceptron(), small_transformer(), heat(), with_dropout(),
          recurrent(),  looping()};
}

TEST_CASE_METHOD(SomeThreads, "devices: the bits of one device, whatever is placed where") {
  for (const SmallModel& model : models()) {
    for (const int micro_batches : {1, 3}) {
      const Found expected = run(model, {.accumulation = micro_batches}, 3);
      for (std::size_t devices = 1; devices <= 4; ++devices) {
        for (const int threads : {1, 2, 4}) {
          CAPTURE(model.name, micro_batches, devices, threads);
          ExecutionStrategy strategy = on_devices(std::vector<Device>(devices), micro_batches);
          strategy.run.threads = threads;
          const Found found = run(model, strategy, 3);
          CHECK(have_same_bits(found, expected));
          const Report& report = found.report;
          CHECK(report.measured_peak <= report.predicted_peak);
          CHECK(report.plan_reused == (model.name != "loop"));
          CHECK(report.devices.size() == devices);
          CHECK(report.micro_batches == micro_batches);
        }
      }
    }
  }
}

TEST_CASE_METHOD(SomeThreads, "devices: every way of computing gradients has the same bits") {
  for (const SmallModel& model : models()) {
    const Found expected = run(model, {});
    std::vector<ExecutionStrategy> strategies(6, on_devices({{}, {}}));
    strategies[0].gradient = GradientMode::full;
    for (std::size_t i = 1; i < 4; ++i) strategies[i].gradient = GradientMode::checkpointed;
    strategies[1].checkpoint_interval = 2;
    strategies[2].checkpoint_fraction = 0.3;
    strategies[3].checkpoint_planner = "square_root";
    strategies[4].run.fuse = false;
    strategies[5].run.anomaly = true;
    for (const ExecutionStrategy& strategy : strategies) {
      CAPTURE(model.name, strategy.summary());
      const Found found = run(model, strategy);
      CHECK(have_same_bits(found, expected));
      CHECK(found.report.measured_peak <= found.report.predicted_peak);
    }
  }
}

TEST_CASE_METHOD(SomeThreads, "devices: sums, uneven micro-batches and half width as without") {
  const SmallModel model = perceptron();
  for (const int parts : {1, 4}) {  // of six examples
    for (const LossReduction reduction : {LossReduction::mean, LossReduction::sum}) {
      const ExecutionStrategy strategy = on_devices({{}, {}}, parts);
      CHECK(have_same_bits(run(model, strategy, 2, reduction),
                           run(model, {.accumulation = parts}, 2, reduction)));
    }
    for (const Precision& precision :
         {Precision{PrecisionKind::full}, Precision{PrecisionKind::half, DType::bf16},
          Precision{PrecisionKind::mixed, DType::bf16},
          Precision{PrecisionKind::mixed, DType::f16}}) {
      ExecutionStrategy strategy = on_devices({{}, {}}, parts);
      strategy.precision = precision;
      CAPTURE(strategy.summary());
      const Found found = run(model, strategy);
      CHECK(have_same_bits(found, run(model, {.precision = precision, .accumulation = parts})));
      CHECK(found.report.precision == precision.summary());
    }
  }
}

TEST_CASE_METHOD(SomeThreads, "devices: operations of users made at every call fill no memory") {
  const auto twice = [] {
    return CustomOperation({.name = "twice",
                            .forward =
                                [](const CustomCall& call) {
                                  const auto x = call.inputs[0].data<float>();
                                  std::ranges::transform(x, call.outputs[0].data<float>().begin(),
                                                         [](float each) { return 2 * each; });
                                },
                            .vjp = [](const Pullback& p) { p.set(0, p.adjoint() * 2.0); }});
  };
  const CustomOperation shared = twice();
  SmallModel model;
  model.parameters = {Tensor::normal({8, 8}, 1, 0, 0.3)};
  model.batch = {Tensor::uniform({4, 8}, 2)};
  for (const bool pipeline : {false, true}) {
    for (const bool at_every_call : {false, true}) {
      CAPTURE(pipeline, at_every_call);
      const ModelFunction loss = [&](Tape&, std::span<const Var> p, std::span<const Var> batch) {
        const CustomOperation own = at_every_call ? twice() : shared;
        return mean(square(own({matmul(own({matmul(batch[0], p[0])}), p[0])})));
      };
      ExecutionStrategy strategy = on_devices({{}, {}});
      if (pipeline) strategy = {.parallelism = ParallelMode::pipeline, .stages = 2};
      Execution execution(strategy);
      const auto bytes_after = [&](int calls) {
        Bytes bytes = 0;
        for (int k = 0; k < calls; ++k) {
          bytes = execution.gradients(loss, model.parameters, model.batch).report().plan_cache;
        }
        return bytes;
      };
      const Bytes once = bytes_after(1);
      CHECK(once > 0);
      CHECK(bytes_after(15) <= (at_every_call ? 12 * once : once));
      CHECK(bytes_after(15) <= (at_every_call ? 12 * once : once));
    }
  }
}

TEST_CASE_METHOD(SomeThreads, "devices: values are those of one device") {
  SmallModel model = two_towers();
  model.loss = [plain = model.loss](Tape& tape, std::span<const Var> p,
                                    std::span<const Var> batch) {
    return matmul(batch[0], p[0]) * plain(tape, p, batch).loss;
  };
  Execution plain;
  Execution parallel(on_devices({{}, {}}));
  for (int step = 0; step < 2; ++step) {
    const Tensor expected = plain.value(model.loss, model.parameters, model.batch);
    CHECK(same_bits(parallel.value(model.loss, model.parameters, model.batch), expected));
    CHECK(parallel.report().plan_reused == (step == 1));
    CHECK(parallel.report().measured_peak <= parallel.report().predicted_peak);
  }
}

TEST_CASE_METHOD(SomeThreads,
                 "devices: values of another model, in a precision, are those of one device") {
  const SmallModel model = two_towers();
  const ModelFunction encode = [](Tape& tape, std::span<const Var> p, std::span<const Var> batch) {
    const auto scope = tape.scope("left");
    return tanh(matmul(batch[0], p[0]));
  };
  ExecutionStrategy strategy = on_devices({{.scopes = {"left"}}, {.scopes = {"right"}}});
  ExecutionStrategy plain;
  for (const auto& precision : {std::optional<Precision>(), std::optional(Precision{})}) {
    strategy.precision = plain.precision = precision;
    Execution execution(strategy);
    execution.gradients(model.loss, model.parameters, model.batch);
    CHECK(same_bits(execution.value(encode, model.parameters, model.batch),
                    Execution(plain).value(encode, model.parameters, model.batch)));
  }
  Execution execution(strategy);
  const ModelFunction loss = [&](Tape& tape, std::span<const Var> p, std::span<const Var> batch) {
    return mean(encode(tape, p, batch).loss);
  };
  CHECK_THROWS_WITH(execution.gradients(loss, model.parameters, model.batch),
                    Contains("[devices] device 1") && Contains("right"));
}

TEST_CASE_METHOD(SomeThreads, "devices: random micro-batches are planned once") {
  ExecutionStrategy strategy = on_devices({{}, {}}, 12);
  SmallModel model = with_dropout();
  model.batch = {Tensor::uniform({12, 10}, 4, -1, 1), Tensor::uniform({12, 3}, 5, -1, 1)};
  const Found found = run(model, strategy, 3);
  CHECK(found.report.plan_reused);
  CHECK(have_same_bits(found, run(model, {.accumulation = 12}, 3)));
}

TEST_CASE_METHOD(SomeThreads, "devices: values without elements, and programs without operations") {
  const SmallModel empty{"empty",
                         {Tensor::ones({4, 6})},
                         {Tensor::uniform({4, 6}, 2, -1, 1)},
                         [](Tape& tape, std::span<const Var> p, std::span<const Var> batch) {
                           Var none;
                           Var all;
                           {
                             const auto scope = tape.scope("first");
                             all = tanh(p[0] * batch[0]);
                             none = sin(slice(all, 1, {.stop = 0}));
                           }
                           const auto scope = tape.scope("second");
                           return mean(concat({cos(none), exp(all)}, 1));
                         }};
  CHECK(have_same_bits(run(empty, on_devices({{.scopes = {"first"}}, {.scopes = {"second"}}})),
                       run(empty, {})));
  const SmallModel nothing{
      "nothing", {Tensor::ones({1})}, {}, [](Tape&, auto p, auto) { return reshape(p[0], {}); }};
  const Found found = run(nothing, on_devices({{.memory_budget = 0}, {}}));
  CHECK(have_same_bits(found, run(nothing, {})));
  CHECK(found.report.devices[0].predicted_peak == 0);
}

TEST_CASE_METHOD(SomeThreads, "devices: a step goes on after one that failed") {
  std::atomic<bool> fails = true;
  const CustomOperation failing({.name = "failing",
                                 .forward =
                                     [&](const CustomCall& call) {
                                       if (fails) throw ArgumentError("[failing] not now");
                                       std::copy_n(call.inputs[0].raw(), call.inputs[0].bytes(),
                                                   call.outputs[0].raw());
                                     },
                                 .vjp = [](const Pullback& p) { p.set(0, p.adjoint()); }});
  SmallModel model = two_towers();
  model.loss = [plain = model.loss, &failing](Tape& tape, std::span<const Var> p,
                                              std::span<const Var> batch) {
    return plain(tape, p, std::vector<Var>{batch[0], failing({batch[1]})});
  };
  Execution execution(on_devices({{}, {}}));
  CHECK_THROWS_WITH(execution.gradients(model.loss, model.parameters, model.batch),
                    Contains("[devices] device") && Contains("not now"));
  fails = false;
  Found found;
  for (const Gradients::Entry& entry :
       execution.gradients(model.loss, model.parameters, model.batch)) {
    found.gradients.push_back(entry.gradient.clone());
  }
  Found expected = run(model, {}, 1);
  expected.loss = found.loss;
  CHECK(have_same_bits(found, expected));
}

TEST_CASE("devices: random graphs have the same bits within any budget") {
  const tbb::global_control control(tbb::global_control::max_allowed_parallelism, 3);
  CHECK(rc::check("any graph", [] {
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    const SmallModel model = random_model(seed, *rc::gen::inRange(4, 20));
    ExecutionStrategy strategy =
        on_devices(std::vector<Device>(*rc::gen::inRange<std::size_t>(1, 4)));
    strategy.run.threads = 2;
    const Found expected = run(model, {}, 2, LossReduction::sum);
    const Found found = run(model, strategy, 2, LossReduction::sum);
    RC_ASSERT(have_same_bits(found, expected));
    RC_ASSERT(found.report.measured_peak <= found.report.predicted_peak);
    if (*rc::gen::inRange(0, 3) > 0) return;  // planning within budgets takes long
    strategy.run.memory_budget = found.report.predicted_peak * *rc::gen::inRange(1, 9) / 8;
    Found within;
    try {
      within = run(model, strategy, 2, LossReduction::sum);
    } catch (const BudgetError& error) {
      RC_ASSERT(error.smallest_feasible() > strategy.run.memory_budget);
      strategy.run.memory_budget = error.smallest_feasible();
      within = run(model, strategy, 2, LossReduction::sum);
    }
    RC_ASSERT(have_same_bits(within, expected));
    RC_ASSERT(within.report.measured_peak <= within.report.predicted_peak);
    RC_ASSERT(within.report.predicted_peak <= strategy.run.memory_budget);
  }));
}

TEST_CASE_METHOD(SomeThreads, "devices: a loop that the model differentiates itself stays whole") {
  const SmallModel penalty{"penalty",
                           {Tensor::normal({8}, 1, 0, 0.5, DType::f64)},
                           {Tensor::uniform({8}, 2, -1, 1, DType::f64)},
                           [](Tape&, std::span<const Var> p, std::span<const Var> batch) {
                             const Var x = tanh(p[0] * batch[0]);
                             const Var end = scan(x, 9, [&](const Var& state, const StepNumber&) {
                               return sin(state) + p[0] * state;
                             });
                             const Var slope = gradient(sum(end), x);
                             return sum(slope * slope);
                           }};
  const Found expected = run(penalty, {});
  for (std::size_t devices = 1; devices <= 4; ++devices) {
    CHECK(have_same_bits(run(penalty, on_devices(std::vector<Device>(devices))), expected));
    ExecutionStrategy piped{.parallelism = ParallelMode::pipeline,
                            .stages = static_cast<int>(std::min<std::size_t>(devices, 3))};
    CHECK(have_same_bits(run(penalty, piped), expected));
  }
}

TEST_CASE_METHOD(SomeThreads, "devices: a model may not look at values while it records") {
  SmallModel model = perceptron();
  model.loss = [plain = model.loss](Tape& tape, std::span<const Var> p,
                                    std::span<const Var> batch) {
    const Var loss = plain(tape, p, batch).loss;
    return loss.value().item() > 0 ? loss * 2.0 : loss;
  };
  CHECK_THROWS_WITH(run(model, on_devices({{}, {}})), Contains("[devices]") &&
                                                          Contains("reads the value") &&
                                                          Contains("(recorded at "));
}

TEST_CASE_METHOD(SomeThreads, "devices: reports and traces have their tasks and transfers") {
  const TemporaryFile file;
  ExecutionStrategy strategy = on_devices({{.scopes = {"left"}}, {.scopes = {"right"}}});
  for (const bool profiling : {false, true}) {
    strategy.run.profile = profiling;
    const Report report = run(two_towers(), strategy).report;
    std::map<int, int> pieces;
    Bytes moved = 0;
    for (const Report::DeviceTask& task : report.device_tasks) {
      CHECK(task.start <= task.end);
      if (task.sender < 0) ++pieces[task.device];
      if (task.sender < 0) continue;
      CHECK(task.sender != task.device);
      moved += task.bytes;
    }
    CHECK(pieces.size() == 2);
    CHECK(moved == report.devices[0].incoming + report.devices[1].incoming);
    // The output of a tower is sent to the other device, and its adjoint back.
    CHECK(moved == 2 * 24 * 32 * 4);
    report.write_chrome_trace(file.path());
    std::map<std::string, int> seen;
    for (const TraceEvent& event : read_trace(file.path())) {
      if (event.phase == "X") ++seen[event.category];
      if (event.phase == "M") CHECK_THAT(event.row_name, Contains("device"));
    }
    CHECK(seen["transfer"] == 2);
    CHECK(seen["piece"] == pieces[0] + pieces[1]);
    CHECK((seen["computed"] > 0) == profiling);
    std::ostringstream text;
    text << report;
    CHECK_THAT(text.str(), Contains("device") && Contains("received"));
  }
}

TEST_CASE_METHOD(SomeThreads, "devices: the adjoint of one branch is sent before the other's") {
  const ExecutionStrategy strategy = on_devices({{.scopes = {"left"}}, {.scopes = {"right"}}});
  SmallModel model = two_towers(256);
  // The adjoints of both branches depend on the mean.
  model.loss = [mean_of = model.loss](Tape& tape, std::span<const Var> p,
                                      std::span<const Var> batch) {
    const Var mean = mean_of(tape, p, batch).loss;
    return mean * mean;
  };
  const Report report = run(model, strategy).report;
  std::set<int> last;  // devices that compute after all transfers
  for (const Report::DeviceTask& task : report.device_tasks) {
    if (task.sender < 0) {
      last.insert(task.device);
    } else {
      last.clear();
    }
  }
  CHECK(last == std::set{0, 1});
}

TEST_CASE_METHOD(SomeThreads, "devices: estimates are what reports predict") {
  for (const SmallModel& model : {two_towers(), perceptron()}) {
    for (const int micro_batches : {1, 3}) {
      const ExecutionStrategy strategy = on_devices({{}, {}}, micro_batches);
      const Report report = run(model, strategy).report;
      const Estimate estimated = estimate(
          strategy, {.model = model.loss, .parameters = model.parameters, .batch = model.batch});
      CHECK(estimated.peak == report.predicted_peak);
      CHECK(estimated.keep_all_peak == report.keep_all_peak);
      CHECK(estimated.seconds > 0);
    }
  }
}

}  // namespace
}  // namespace palimpsest::model_parallel_test
