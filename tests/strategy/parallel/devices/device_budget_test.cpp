#include <oneapi/tbb/global_control.h>

#include <algorithm>
#include <atomic>

#include "tests/cases.h"
#include "tests/strategy/parallel/devices/devices.h"

namespace palimpsest::device_budget_test {
namespace {

using Catch::Matchers::Contains;

struct SomeThreads {
  tbb::global_control control{tbb::global_control::max_allowed_parallelism, 4};
};

void check_peaks(const Report& report) {
  CHECK(report.measured_peak <= report.predicted_peak);
  Bytes predicted = 0;
  for (const Report::Device& device : report.devices) {
    CHECK(device.measured_peak <= device.predicted_peak);
    CHECK(device.predicted_peak <= device.budget);
    predicted += device.predicted_peak;
  }
  CHECK(predicted == report.predicted_peak);
}

/// The smallest budget of one device when the others are unlimited.
Bytes smallest_of(const SmallModel& model, ExecutionStrategy strategy, std::size_t device) {
  strategy.devices[device].memory_budget = 1;
  try {
    run(model, strategy, 1);
  } catch (const BudgetError& error) {
    CHECK(error.budget() == 1);
    CHECK_THAT(error.what(),
               Contains("[devices] device " + std::to_string(device) + " needs a budget of"));
    return error.smallest_feasible();
  }
  FAIL("a byte is enough");
  return 0;
}

TEST_CASE_METHOD(SomeThreads, "device budgets: every one from the smallest to none is kept") {
  const SmallModel model = two_towers(32, 4);
  const Found expected = run(model, {});
  const ExecutionStrategy without =
      on_devices({{.scopes = {"left", "together"}}, {.scopes = {"right"}}});
  const Report whole = run(model, without).report;
  check_peaks(whole);
  for (const std::size_t device : {0, 1}) {
    const Bytes smallest = smallest_of(model, without, device);
    const Bytes most = whole.devices[device].predicted_peak;
    CHECK(smallest < most);
    double last_overhead = 1e9;
    for (int step = 0; step <= 4; ++step) {
      ExecutionStrategy strategy = without;
      strategy.devices[device].memory_budget = smallest + (most - smallest) * step / 4;
      CAPTURE(device, step, strategy.devices[device].memory_budget);
      const Found found = run(model, strategy);
      CHECK(have_same_bits(found, expected));
      check_peaks(found.report);
      CHECK(found.report.compute_overhead <= last_overhead + 1e-9);
      last_overhead = found.report.compute_overhead;
    }
    CHECK(last_overhead < 1e-9);
    ExecutionStrategy less = without;
    less.devices[device].memory_budget = smallest - 1;
    CHECK_THROWS_AS(run(model, less), BudgetError);
  }
}

TEST_CASE_METHOD(SomeThreads, "device budgets: one for all is shared") {
  for (const SmallModel& model : {two_towers(), small_transformer(), heat()}) {
    const Found expected = run(model, {});
    ExecutionStrategy strategy = on_devices({{}, {}, {}});
    const Report whole = run(model, strategy).report;
    Bytes smallest = 0;
    strategy.run.memory_budget = 1;
    try {
      run(model, strategy);
      FAIL("a byte is enough");
    } catch (const BudgetError& error) {
      CHECK_THAT(error.what(), Contains("3 devices need a budget of"));
      smallest = error.smallest_feasible();
    }
    const int steps = cases(5);
    for (int step = 0; step <= steps; ++step) {
      strategy.run.memory_budget = smallest + (whole.predicted_peak - smallest) * step / steps;
      CAPTURE(model.name, step);
      const Found found = run(model, strategy);
      CHECK(have_same_bits(found, expected));
      check_peaks(found.report);
      CHECK(found.report.predicted_peak <= strategy.run.memory_budget);
      CHECK(found.report.budget == strategy.run.memory_budget);
    }
  }
}

TEST_CASE_METHOD(SomeThreads, "device budgets: sums of micro-batches are counted") {
  const SmallModel model = two_towers();
  ExecutionStrategy strategy = on_devices({{.scopes = {"left"}}, {.scopes = {"right"}}}, 3);
  const Bytes smallest = smallest_of(model, strategy, 0);
  Bytes sums = 0;
  for (std::size_t k = 0; k < 3; ++k) sums += model.parameters[k].bytes();
  CHECK(smallest > 2 * sums);
  strategy.devices[0].memory_budget = smallest;
  const Found found = run(model, strategy);
  CHECK(have_same_bits(found, run(model, {.accumulation = 3})));
  CHECK(found.report.devices[0].predicted_peak <= smallest);
  CHECK(found.report.measured_peak <= found.report.predicted_peak);
}

TEST_CASE_METHOD(SomeThreads, "device budgets: with micro-batches errors name what is enough") {
  const SmallModel model = two_towers();
  ExecutionStrategy strategy = on_devices({{.scopes = {"left"}}, {.scopes = {"right"}}}, 3);
  const auto refused = [&] {
    try {
      run(model, strategy);
    } catch (const BudgetError& error) {
      CHECK(error.smallest_feasible() > error.budget());
      return error.smallest_feasible();
    }
    FAIL("it fits");
    return Bytes{0};
  };
  strategy.run.memory_budget = 1;
  strategy.run.memory_budget = refused();
  CHECK(run(model, strategy).report.predicted_peak <= strategy.run.memory_budget);
  --strategy.run.memory_budget;
  refused();
  strategy.run.memory_budget = 1 << 30;
  strategy.devices[0].memory_budget = 1;
  strategy.devices[0].memory_budget = refused();
  CHECK(run(model, strategy).report.devices[0].predicted_peak <= strategy.devices[0].memory_budget);
}

TEST_CASE_METHOD(SomeThreads, "device budgets: a budget that is named for a device is enough") {
  // Where an operation runs depends on the budgets.
  const SmallModel model = two_towers(32, 4);
  for (const bool has_scopes : {false, true}) {
    ExecutionStrategy strategy =
        has_scopes ? on_devices({{.scopes = {"left"}}, {}}) : on_devices({{}, {}});
    for (const Bytes other : {1'000, 20'000, 100'000}) {
      strategy.devices[0].memory_budget = 5'000;
      strategy.devices[1].memory_budget = other;
      Bytes named[2] = {0, 0};
      int refusals = 0;
      for (bool fits = false; !fits; ++refusals) {
        try {
          run(model, strategy);
          fits = true;
        } catch (const BudgetError& error) {
          const std::string message = error.what();
          const std::size_t device = message.find("device 1 needs") != message.npos ? 1 : 0;
          CAPTURE(has_scopes, other, refusals, message);
          REQUIRE_THAT(message, Contains("device " + std::to_string(device) + " needs"));
          REQUIRE(named[device] == 0);
          named[device] = error.smallest_feasible();
          strategy.devices[device].memory_budget = named[device];
        }
      }
      CHECK(refusals > 1);
    }
  }
}

TEST_CASE_METHOD(SomeThreads,
                 "device budgets: one for all is kept where computing again takes more") {
  // A value sent to a device and its adjoint there are equally large. They are live at the same
  // time only if the value is read again.
  const SmallModel model{"sent",
                         {Tensor::normal({64, 256}, 1, 0, 0.2)},
                         {Tensor::uniform({128, 64}, 2, -1, 1)},
                         [](Tape& tape, std::span<const Var> p, std::span<const Var> batch) {
                           Var x;
                           {
                             const auto scope = tape.scope("first");
                             x = matmul(batch[0], p[0]);
                           }
                           Var y;
                           {
                             const auto scope = tape.scope("second");
                             y = tanh(mean(x, {1}));
                           }
                           const auto scope = tape.scope("third");
                           return mean(y * y);
                         }};
  ExecutionStrategy strategy = on_devices({{.scopes = {"first", "third"}}, {.scopes = {"second"}}});
  const Bytes whole = run(model, strategy).report.predicted_peak;
  const Found expected = run(model, {});
  strategy.gradient = GradientMode::checkpointed;
  strategy.checkpoint_interval = 2;
  const Bytes again = run(model, strategy).report.predicted_peak;
  CHECK(again > whole);
  for (const Bytes budget : {whole, again - 1}) {
    strategy.run.memory_budget = budget;
    try {
      const Found found = run(model, strategy);
      CHECK(have_same_bits(found, expected));
      CHECK(found.report.predicted_peak <= budget);
    } catch (const BudgetError& error) {
      CHECK(error.smallest_feasible() > budget);
    }
  }
}

TEST_CASE("device budgets: a loop's own budget that is too small is named") {
  for (const bool is_scaled : {false, true}) {
    SmallModel model = two_towers();
    model.loss = [plain = model.loss, is_scaled](Tape& tape, std::span<const Var> p,
                                                 std::span<const Var> batch) {
      // A loop of a constant has no derivative.
      const Var start = is_scaled ? sum(p[0]) : sum(batch[0]);
      const auto step = [](const Var& x, const StepNumber&) { return sin(x) * 0.5; };
      return plain(tape, p, batch).loss + 0.1 * scan(start, 3, step, {.memory_budget = 8});
    };
    CHECK_THROWS_WITH(run(model, on_devices({{}, {}})), Contains("own memory budget of 8 bytes"));
  }
}

TEST_CASE_METHOD(SomeThreads, "device budgets: what does not fit is refused before any work") {
  std::atomic<int> calls = 0;
  const CustomOperation counted({.name = "counted",
                                 .forward =
                                     [&](const CustomCall& call) {
                                       ++calls;
                                       std::copy_n(call.inputs[0].raw(), call.inputs[0].bytes(),
                                                   call.outputs[0].raw());
                                     },
                                 .vjp = [](const Pullback& p) { p.set(0, p.adjoint()); }});
  SmallModel model = two_towers();
  model.loss = [plain = model.loss, &counted](Tape& tape, std::span<const Var> p,
                                              std::span<const Var> batch) {
    return plain(tape, p, std::vector<Var>{counted({batch[0]}), batch[1]});
  };
  ExecutionStrategy strategy = on_devices({{.memory_budget = 100}, {.memory_budget = 100}});
  CHECK_THROWS_AS(run(model, strategy), BudgetError);
  CHECK(calls == 0);
  strategy.devices[0].memory_budget = unlimited;
  run(model, strategy);
  CHECK(calls > 0);
}

TEST_CASE_METHOD(SomeThreads, "device budgets: where nothing is to be computed again nothing is") {
  // Products that are read early and late, but not by anything that an adjoint reads.
  const SmallModel model{"products",
                         {Tensor::normal({32, 32}, 1, 0, 0.2), Tensor::normal({32, 32}, 2, 0, 0.2)},
                         {Tensor::uniform({48, 32}, 3, -1, 1), Tensor::normal({32, 32}, 4, 0, 0.2)},
                         [](Tape& tape, std::span<const Var> p, std::span<const Var> batch) {
                           Var left;
                           {
                             const auto scope = tape.scope("left");
                             const auto constant = tape.no_gradient();
                             std::vector<Var> products{batch[0]};
                             for (int k = 0; k < 6; ++k)
                               products.push_back(matmul(products.back(), batch[1]));
                             left = products[6];
                             for (std::size_t k = 1; k < 6; ++k)
                               left = matmul(left + products[k], batch[1]);
                             const Tape::WithGradient differentiated(tape);
                             left = left * sum(p[0]);
                           }
                           const auto scope = tape.scope("right");
                           return mean(left * matmul(batch[0], p[1]));
                         }};
  ExecutionStrategy strategy = on_devices({{.scopes = {"left"}}, {.scopes = {"right"}}});
  strategy.devices[0].memory_budget = smallest_of(model, strategy, 0);
  const Report again = run(model, strategy).report;
  CHECK(again.recomputed > 0);
  strategy.gradient = GradientMode::full;
  CHECK_THROWS_AS(run(model, strategy), BudgetError);
  strategy.devices[0].memory_budget = smallest_of(model, strategy, 0);
  const Report within = run(model, strategy).report;
  CHECK(within.recomputed == 0);
  CHECK(within.compute_overhead < 1e-9);
  check_peaks(within);
}

TEST_CASE_METHOD(SomeThreads, "device budgets: a device without room leaves the work to another") {
  const SmallModel model = two_towers();
  const Found found = run(model, on_devices({{.memory_budget = 4'000'000}, {.memory_budget = 0}}));
  CHECK(have_same_bits(found, run(model, {})));
  CHECK(found.report.devices[1].predicted_peak == 0);
}

}  // namespace
}  // namespace palimpsest::device_budget_test
