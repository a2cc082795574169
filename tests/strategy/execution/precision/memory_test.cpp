#include "tests/catch.h"
#include "tests/strategy/execution/precision/small_transformer.h"

namespace palimpsest::memory_test {
namespace {

Report step(const SmallTransformer& model, const Precision& precision) {
  Tape tape(precise(precision));
  const Gradients gradients = backward(model.loss(tape, 1), {.threads = 1});
  CHECK(gradients.report().measured_peak <= gradients.report().predicted_peak);
  return gradients.report();
}

// The sizes of the example that trains on text.
TEST_CASE("mixed precision takes little more than half the memory of single precision") {
  const SmallTransformer model(
      {.batch = 16, .context = 128, .width = 128, .heads = 4, .tokens = 256, .blocks = 4});
  const auto single = static_cast<double>(step(model, {PrecisionKind::single}).measured_peak);
  const auto mixed = [&](DType half) {
    return static_cast<double>(step(model, {.half = half}).measured_peak) / single;
  };
  CHECK(mixed(DType::bf16) <= 0.55);
  CHECK(mixed(DType::f16) <= 0.55);
  const auto full = static_cast<double>(step(model, {PrecisionKind::full}).measured_peak);
  CHECK(full / single > 1.9);
}

}  // namespace
}  // namespace palimpsest::memory_test
