#include "tests/strategy/execution/outputs.h"
#include "tests/strategy/parallel/devices/devices.h"

namespace palimpsest::device_outputs_test {

TEST_CASE("devices: outputs and updates have the bits of plain runs") {
  for (const int parts : {1, 3, 5}) {  // of 12 examples
    const FoundOutputs expected = run_with_outputs({.accumulation = parts});
    REQUIRE(expected.outputs.size() == ModelWithOutputs::outputs);
    const std::vector<std::vector<Device>> placements{
        {Device{}, Device{}},
        {Device{.scopes = {"first"}}, Device{.scopes = {"second"}}, Device{.scopes = {"third"}}}};
    for (const std::vector<Device>& devices : placements) {
      for (const GradientMode gradient :
           {GradientMode::automatic, GradientMode::full, GradientMode::checkpointed}) {
        CAPTURE(parts, devices.size(), gradient);
        ExecutionStrategy strategy = on_devices(devices, parts);
        strategy.gradient = gradient;
        if (gradient == GradientMode::checkpointed) strategy.checkpoint_interval = 2;
        strategy.run.threads = 2;
        const FoundOutputs found = run_with_outputs(strategy);
        CHECK(have_same_bits(found, expected));
        CHECK(found.last.report.plan_reused);
        CHECK(found.last.report.measured_peak <= found.last.report.predicted_peak);
      }
    }
  }
}

TEST_CASE("devices: outputs in other precisions have the bits of plain runs") {
  for (const DType half : {DType::bf16, DType::f16}) {
    ExecutionStrategy plain{.precision = Precision{PrecisionKind::mixed, half}, .accumulation = 3};
    ExecutionStrategy placed = on_devices({Device{}, Device{}}, 3);
    placed.precision = plain.precision;
    CHECK(have_same_bits(run_with_outputs(placed), run_with_outputs(plain)));
  }
}

TEST_CASE("devices: outputs count towards the budget") {
  const auto within = [](Bytes budget) {
    ExecutionStrategy strategy = on_devices({Device{}, Device{}});
    strategy.run.memory_budget = budget;
    return run_with_outputs(strategy);
  };
  const FoundOutputs expected = run_with_outputs({});
  Bytes returned = 0;
  for (const Tensor& output : expected.outputs) returned += output.bytes();
  const Bytes least = budget_named_by(within);
  CHECK(least > returned);
  const FoundOutputs found = within(least);
  CHECK(have_same_bits(found, expected));
  CHECK(found.last.report.predicted_peak <= least);
  CHECK(found.last.report.measured_peak <= found.last.report.predicted_peak);
}

}  // namespace palimpsest::device_outputs_test
