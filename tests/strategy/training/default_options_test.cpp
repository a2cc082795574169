#include "data/data.h"
#include "palimpsest.h"
#include "strategy/training/training.h"
#include "tests/catch.h"

namespace palimpsest::default_options_test {
namespace {

TEST_CASE("empty braces are the default options of every class that takes only options") {
  CHECK(LossScaler({}).scale() == LossScaler().scale());
  CHECK(LossScaler{{}}.scale() == LossScaler{}.scale());
  CHECK(LossScaler({.scale = 4}).scale() == 4);
  CHECK(PlateauSchedule({}).rate() == PlateauOptions{}.rate);
  CHECK(GradientAccumulator({}).statistics().accumulation_steps == AccumulatorOptions{}.steps);
  CHECK(Execution({}).strategy() == ExecutionStrategy{});
  CHECK(Execution({}, LossReduction::sum).strategy() == ExecutionStrategy{});
  CHECK(Execution({.accumulation = 2}).strategy().accumulation == 2);
  Accuracy accuracy({});
  accuracy.add(Tensor::matrix({{0, 1}}), Tensor::from<std::int64_t>({1}, {1}));
  CHECK(accuracy.value() == 1);
}

}  // namespace
}  // namespace palimpsest::default_options_test
