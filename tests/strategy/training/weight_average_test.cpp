#include "strategy/training/weight_average.h"

#include <algorithm>
#include <cmath>

#include "palimpsest.h"
#include "tests/catch.h"

namespace palimpsest::weight_average_test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

NamedTensors parameters_at(double value) {
  return {{"w", Tensor::full({3}, value, DType::f64)}, {"b", Tensor::full({2}, value)}};
}

/// The average of f64 after updates with 1, 2, 4, 8 …
double after_updates(WeightAverage average, int updates) {
  for (int i = 0; i < updates; ++i) average.update(parameters_at(std::ldexp(1, i)));
  CHECK(average.updates() == updates);
  const NamedTensors averages = average.averages();
  CHECK_THAT(averages.at("b").at(0), WithinRel(averages.at("w").at(0), 1e-6));
  return averages.at("w").at(0);
}

TEST_CASE("exponential averages begin as their option says") {
  double copied = 1, warm = 1, corrected = 0.1;
  for (int t = 1; t < 5; ++t) {
    const double p = std::ldexp(1, t);
    copied = 0.9 * copied + 0.1 * p;
    const double decay = std::min(0.9, (1.0 + t) / (10 + t));
    warm = decay * warm + (1 - decay) * p;
    corrected = 0.9 * corrected + 0.1 * p;
  }
  using Start = AverageStart;
  const auto average = [](Start start) {
    return after_updates(WeightAverage::exponential({.decay = 0.9, .start = start}), 5);
  };
  CHECK_THAT(average(Start::copy), WithinRel(copied, 1e-14));
  CHECK_THAT(average(Start::warm_up), WithinRel(warm, 1e-14));
  CHECK_THAT(average(Start::corrected), WithinRel(corrected / (1 - std::pow(0.9, 5)), 1e-14));
}

TEST_CASE("an equal average is the mean of all updates") {
  CHECK_THAT(after_updates(WeightAverage::equal(), 5), WithinRel(31.0 / 5, 1e-14));
}

TEST_CASE("parameters have their averages while a guard exists, and then their own bits") {
  const NamedTensors parameters{{"w", Tensor::uniform({50}, 1, -1, 1)},
                                {"h", Tensor::uniform({50}, 2, -1, 1).to(DType::f16)}};
  NamedTensors own;
  for (const auto& [name, tensor] : parameters) own.emplace(name, tensor.clone());
  WeightAverage average = WeightAverage::equal();
  average.update({{"w", Tensor::full({50}, 2)}, {"h", Tensor::full({50}, 4, DType::f16)}});
  {
    const AveragedWeights averaged(average, parameters);
    CHECK(parameters.at("w").at(7) == 2);
    CHECK(parameters.at("h").at(7) == 4);
  }
  for (const auto& [name, tensor] : parameters) CHECK(same_bits(tensor, own.at(name)));
  average.copy_to(parameters);
  CHECK(parameters.at("h").at(49) == 4);
  CHECK(average.averages().at("h").dtype() == DType::f32);
}

TEST_CASE("a restored average continues with the same bits") {
  for (const AverageStart start :
       {AverageStart::copy, AverageStart::corrected, AverageStart::warm_up}) {
    WeightAverage average = WeightAverage::exponential({.decay = 0.99, .start = start});
    for (int i = 0; i < 3; ++i) average.update({{"w", Tensor::uniform({100}, 1 + i)}});
    WeightAverage restored = WeightAverage::exponential({.decay = 0.99, .start = start});
    restored.load_state(average.state());
    for (int i = 0; i < 2; ++i) {
      average.update({{"w", Tensor::uniform({100}, 9 + i)}});
      restored.update({{"w", Tensor::uniform({100}, 9 + i)}});
    }
    CHECK(restored.updates() == 5);
    CHECK(same_bits(restored.averages().at("w"), average.averages().at("w")));
  }
}

TEST_CASE("averages of other parameters are errors that name them") {
  WeightAverage average = WeightAverage::equal();
  CHECK_THROWS_WITH(average.averages(), Contains("call update() first"));
  CHECK_THROWS_WITH(average.update({{"n", Tensor::arange(3)}}), Contains("'n' is i64 (3)"));
  average.update(parameters_at(1));
  CHECK_THROWS_WITH(average.update({{"w", Tensor::ones({3}, DType::f64)}}),
                    Contains("'b' is missing"));
  CHECK_THROWS_WITH(
      average.update({{"w", Tensor::ones({4}, DType::f64)}, {"b", Tensor::ones({2})}}),
      Contains("'w' is f64 (4)") && Contains("f64 (3)"));
  NamedTensors more = parameters_at(1);
  more.emplace("x", Tensor::ones({1}));
  CHECK_THROWS_WITH(average.copy_to(more), Contains("'x' has no average"));
  CHECK(average.updates() == 1);

  NamedTensors state = average.state();
  state.erase("average/w");
  CHECK_THROWS_WITH(average.load_state(state), Contains("'average/w' of the state is missing"));
  state.emplace("average/w", Tensor::ones({3}));
  CHECK_THROWS_WITH(average.check_state(state), Contains("f32 (3) and must be f64 (3)"));
  state.emplace("w", Tensor::ones({3}));
  CHECK_THROWS_WITH(average.load_state(state), Contains("'w' of the state is unknown"));
  state = average.state();
  state.erase("updates");
  CHECK_THROWS_WITH(WeightAverage::equal().load_state(state), Contains("'updates'"));
  CHECK_THROWS_AS(WeightAverage::exponential({.decay = 1}), ArgumentError);
}

}  // namespace
}  // namespace palimpsest::weight_average_test
