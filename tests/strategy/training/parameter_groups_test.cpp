#include "strategy/training/parameter_groups.h"

#include "palimpsest.h"
#include "tests/catch.h"

namespace palimpsest::parameter_groups_test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::WithinAbs;

struct TwoLayers {
  Tensor weight = Tensor::ones({2, 3}, DType::f64);
  Tensor bias = Tensor::ones({3}, DType::f64);
  Tensor gain = Tensor::ones({3}, DType::f64);

  /// A step with gradients of 1.
  void step(Optimizer& optimizer) const {
    Tape tape;
    const auto scope = tape.scope("layer");
    const Var w = tape.parameter(weight, "weight");
    const Var b = tape.parameter(bias, "bias");
    const Var g = tape.parameter(gain, "gain");
    optimizer.step(backward(sum(w) + sum(b) + sum(g)));
  }
};

TEST_CASE("predicates select parameters by the end of their name and by their axes") {
  const ParameterInfo bias{"layer1/bias", {{4}, DType::f32}};
  const ParameterInfo weight{"layer1/weight", {{4, 4}, DType::f32}};
  const ParameterInfo scalar{"", {{}, DType::f32}};
  const auto ends = names_ending({"bias", "gain"});
  CHECK(ends(bias));
  CHECK_FALSE(ends(weight));
  CHECK_FALSE(ends(scalar));
  CHECK(axes_at_most(1)(bias));
  CHECK(axes_at_most(1)(scalar));
  CHECK_FALSE(axes_at_most(1)(weight));
  CHECK_FALSE(axes_at_most(0)(bias));
  CHECK_THROWS_AS(axes_at_most(-1), ArgumentError);
}

TEST_CASE("groups have their own decay and rate, and the first match wins") {
  const TwoLayers model;
  const auto optimizer = sgd(
      {.learning_rate = 0.1,
       .weight_decay = 0.5,
       .groups = {{.matches = names_ending({"gain"}), .learning_rate_factor = 2, .weight_decay = 0},
                  {.matches = axes_at_most(1), .weight_decay = 1}}});
  model.step(*optimizer);
  CHECK_THAT(model.weight.at(0), WithinAbs(1 - 0.1 * 1.5, 1e-15));
  CHECK_THAT(model.bias.at(0), WithinAbs(1 - 0.1 * 2, 1e-15));
  CHECK_THAT(model.gain.at(0), WithinAbs(1 - 0.2 * 1, 1e-15));
  optimizer->set_learning_rate(0.01);  // factors apply to the new rate
  model.step(*optimizer);
  CHECK_THAT(model.gain.at(0), WithinAbs(0.8 - 0.02, 1e-15));
}

TEST_CASE("AdamW leaves biases without decay as they are if their gradient is 0") {
  const Tensor weight = Tensor::ones({2, 2});
  const Tensor bias = Tensor::ones({2});
  const auto optimizer = adamw(
      {.learning_rate = 1e-3, .groups = {{.matches = names_ending({"bias"}), .weight_decay = 0}}});
  Tape tape;
  const Var w = tape.parameter(weight, "weight");
  const Var b = tape.parameter(bias, "bias");
  optimizer->step(backward(sum(w) * 0.0 + sum(b) * 0.0));
  CHECK(weight.at(0) < 1);
  CHECK(bias.at(0) == 1);
}

TEST_CASE("groups that cannot be meant are errors") {
  CHECK_THROWS_WITH(adam({.groups = {{.weight_decay = 0}}}),
                    Contains("[adam] group 0 has no predicate") && Contains("set matches"));
  CHECK_THROWS_WITH(lion({.groups = {{.matches = axes_at_most(1), .learning_rate_factor = -1}}}),
                    Contains("learning_rate_factor of group 0 is -1"));
  CHECK_THROWS_WITH(sgd({.groups = {{.matches = axes_at_most(1), .weight_decay = -1}}}),
                    Contains("weight_decay of group 0 is -1"));
  const TwoLayers model;
  const auto optimizer =
      sgd({.groups = {{.matches = axes_at_most(1)}, {.matches = names_ending({"bias"})}}});
  CHECK_THROWS_WITH(model.step(*optimizer), Contains("group 1 selects no parameter") &&
                                                Contains("'layer/weight', 'layer/bias'"));
  CHECK(model.weight.at(0) == 1);
  CHECK(optimizer->steps() == 0);
}

}  // namespace
}  // namespace palimpsest::parameter_groups_test
