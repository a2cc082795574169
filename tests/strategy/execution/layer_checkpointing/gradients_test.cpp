#include <algorithm>
#include <cmath>

#include "tests/catch.h"
#include "tests/strategy/execution/layer_checkpointing/models.h"

namespace palimpsest::gradients_test {
namespace {

/// Checks that a configuration without rounding gives the same gradients, activations and loss as
/// the whole model.
void check_same(const LayerModel& model, const Tensor& input, const LayerCheckpointing& given,
                const Whole& whole, std::uint64_t seed, const RunOptions& options = {}) {
  LayerCheckpointer layers(model, given, options);
  const Tensor output = layers.forward(input, seed);
  CHECK(same_bits(output, whole.activations.back()));
  const LayerGradients found = layers.backward(square_sum);
  CHECK(same_bits(found.parameters.loss(), whole.loss));
  CHECK(same_bits(all(found), whole.gradients));
  const std::size_t parts = model.layer.forward != nullptr ? 1 : 2;
  for (std::size_t k = 0; k < whole.activations.size(); ++k) {
    const Sublayer part = k % parts == 0 ? Sublayer::attention : Sublayer::feed_forward;
    CHECK(same_bits(layers.activation(static_cast<int>(k / parts), part), whole.activations[k]));
  }
  // Runs backward again, from the adjoint of the output: the kept values are still there.
  Tensor adjoint(output.shape(), output.dtype());
  for (std::int64_t i = 0; i < output.elements(); ++i) {
    visit_floating(output.dtype(), [&]<class T>(T) {
      const auto at = static_cast<std::size_t>(i);
      adjoint.data<T>()[at] = output.data<T>()[at] + output.data<T>()[at];
    });
  }
  CHECK(same_bits(all(layers.backward(adjoint)), whole.gradients));
}

/// Whether the difference is within a share of the largest element.
bool is_near(const Tensor& found, const Tensor& expected, double share) {
  double largest = 0;
  double error = 0;
  for (std::int64_t i = 0; i < expected.elements(); ++i) {
    largest = std::max(largest, std::abs(expected.at(i)));
    error = std::max(error, std::abs(found.at(i) - expected.at(i)));
  }
  return found.type() == expected.type() && error <= share * largest;
}

TEST_CASE("layers of a perceptron have the gradients of the whole, whatever is kept") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const LayerModel model = perceptron(6, 8, dtype);
  const Tensor input = Tensor::uniform({5, 8}, 1, -1, 1, dtype);
  const Whole whole = run_whole(model, input, square_sum);
  for (const LayerCheckpointing& given : configurations(false)) {
    CAPTURE(static_cast<int>(given.mode), given.interval.value_or(0), given.layers,
            given.memory_fraction.value_or(0));
    if (given.codec == Codec::exact) check_same(model, input, given, whole, 0);
  }
}

TEST_CASE("layers of a transformer have the gradients of the whole, dropout included") {
  const LayerModel model = transformer(5, 8);
  const Tensor input = Tensor::normal({2, 6, 8}, 1);
  const std::uint64_t seed = 7;
  const Whole whole = run_whole(model, input, square_sum, seed);
  CHECK(!same_bits(whole.loss, run_whole(model, input, square_sum, 8).loss));
  for (const LayerCheckpointing& given : configurations(true)) {
    CAPTURE(static_cast<int>(given.mode), given.interval.value_or(0), given.layers,
            given.memory_fraction.value_or(0), given.sublayers.attention,
            given.sublayers.feed_forward);
    if (given.codec == Codec::exact) check_same(model, input, given, whole, seed);
  }
}

TEST_CASE("layers are run as the options say") {
  const LayerModel model = transformer(5, 8);
  const Tensor input = Tensor::normal({2, 6, 8}, 1);
  const Whole whole = run_whole(model, input, square_sum, 3);
  const LayerCheckpointing every{.mode = LayerCheckpointing::Mode::every, .interval = 2};
  SECTION("on one thread") { check_same(model, input, every, whole, 3, {.threads = 1}); }
  SECTION("apart") {
    check_same(model, input, every, whole, 3, {.fuse = false, .simplify = false});
  }
  SECTION("within a budget each") {
    check_same(model, input, every, whole, 3, {.memory_budget = 12'000});
    CHECK_THROWS_AS(LayerCheckpointer(model, every, {.memory_budget = 1'000}).forward(input),
                    BudgetError);
  }
}

TEST_CASE("layers in another precision have the same bits, whatever is kept") {
  const Precision precision = GENERATE(Precision{}, Precision{PrecisionKind::mixed, DType::f16},
                                       Precision{PrecisionKind::full});
  CAPTURE(precision.summary());
  const auto check_all = [&](const LayerModel& model, const Tensor& input, bool sublayers) {
    std::vector<Tensor> expected;
    for (const LayerCheckpointing& given : configurations(sublayers)) {
      if (given.codec != Codec::exact) continue;
      LayerCheckpointer layers(model, given, {}, precision);
      const Tensor output = layers.forward(input, 7);
      const LayerGradients gradients = layers.backward(square_sum);
      std::vector<Tensor> found = all(gradients);
      found.push_back(output);
      if (expected.empty()) expected = found;
      CHECK(same_bits(found, expected));
      CHECK(layers.use().peak <= layers.forecast(input.type()).use.peak);
    }
    return expected;
  };
  const LayerModel dense = perceptron(6, 8);
  const Tensor input = Tensor::uniform({5, 8}, 1, -1, 1);
  const std::vector<Tensor> found = check_all(dense, input, false);
  const Whole whole = run_whole(dense, input, square_sum, 0, precise(precision));
  const Whole single = run_whole(dense, input, square_sum);
  CHECK(found.back().dtype() == DType::f32);
  const bool rounds = precision.kind == PrecisionKind::full;  // rounds to f32 between layers
  if (!rounds) CHECK(same_bits(found.back(), whole.activations.back()));
  CHECK(same_bits(found.back(), single.activations.back()) == false);
  for (std::size_t i = 0; i < whole.gradients.size(); ++i) {
    CHECK(is_near(found[i], whole.gradients[i], rounds ? 1e-5 : 0.05));
  }
  check_all(transformer(5, 8), Tensor::normal({2, 6, 8}, 1), true);
  check_all(odd_layers(), Tensor::normal({6, 4}, 5), false);
}

TEST_CASE("layers of every kind") {
  const LayerModel model = odd_layers();
  const Tensor input = Tensor::normal({6, 4}, 5);
  const Whole whole = run_whole(model, input, square_sum);
  for (const LayerCheckpointing& given : configurations(false)) {
    CAPTURE(static_cast<int>(given.mode), given.interval.value_or(0), given.layers,
            given.memory_fraction.value_or(0));
    if (given.codec != Codec::exact) continue;
    if (given.mode == LayerCheckpointing::Mode::dynamic && given.memory_fraction < 0.8) continue;
    check_same(model, input, given, whole, 0);
  }
}

TEST_CASE("where no derivative flows gradients are zeros, whatever lies before") {
  LayerModel model = perceptron(6, 8);
  model.layer.forward = [sound = model.layer.forward](const Var& x, std::span<const Var> w,
                                                      int layer) {
    if (layer == 1) return sqrt(sound(x, w, layer).output * 0.0);  // has an infinite slope
    return sound(layer == 3 ? stop_gradient(x) : x, w, layer).output;
  };
  const Tensor input = Tensor::uniform({5, 8}, 1, -1, 1);
  const Whole whole = run_whole(model, input, square_sum);
  for (const LayerCheckpointing& given : configurations(false)) {
    CAPTURE(static_cast<int>(given.mode), given.interval.value_or(0), given.layers,
            given.memory_fraction.value_or(0));
    if (given.codec == Codec::exact) check_same(model, input, given, whole, 0);
  }
  const auto constant = [](const Var& y) { return sum(stop_gradient(y)); };
  LayerCheckpointer layers(model, {.mode = LayerCheckpointing::Mode::every, .interval = 2});
  layers.forward(input);
  CHECK(same_bits(all(layers.backward(constant)), run_whole(model, input, constant).gradients));
}

TEST_CASE("an input that is not floating has no gradient") {
  LayerModel model = perceptron(4, 8);
  model.layer.parameters[0] = {Tensor::normal({10, 8}, 3)};
  model.layer.forward = [](const Var& x, std::span<const Var> w, int layer) {
    return layer == 0 ? embedding(w[0], x) : tanh(matmul(tanh(matmul(x, w[0]) + w[1]), w[2]));
  };
  const Tensor tokens = Tensor::from<std::int32_t>({1, 4, 9}, {3});
  const Whole whole = run_whole(model, tokens, square_sum);
  LayerCheckpointer layers(model, {.mode = LayerCheckpointing::Mode::every, .interval = 2});
  layers.forward(tokens);
  const LayerGradients found = layers.backward(square_sum);
  CHECK_FALSE(found.input.defined());
  CHECK(same_bits(all(found), whole.gradients));
}

TEST_CASE("layers that look at values are called for every pass") {
  LayerModel model = perceptron(4, 8);
  model.layer.forward = [](const Var& x, std::span<const Var> w, int) {
    const Var y = matmul(x, w[0]);
    return matmul(sum(y).item() > 0 ? tanh(y + w[1]) : sin(y) * w[1], w[2]);
  };
  const Tensor input = Tensor::normal({3, 8}, 9);
  const Whole whole = run_whole(model, input, square_sum);
  check_same(model, input, {.mode = LayerCheckpointing::Mode::none}, whole, 0);
  check_same(model, input, {.mode = LayerCheckpointing::Mode::every, .interval = 2}, whole, 0);
}

TEST_CASE("gradients are those of optimizers, and parameters change in place") {
  const LayerModel model = perceptron(4, 8);
  const Tensor input = Tensor::uniform({5, 8}, 1);
  LayerCheckpointer layers(model, {.mode = LayerCheckpointing::Mode::every, .interval = 1});
  const auto optimizer = sgd({.learning_rate = 0.001});
  double before = INFINITY;
  for (int step = 0; step < 5; ++step) {
    layers.forward(input);
    const LayerGradients found = layers.backward(square_sum);
    const double loss = found.parameters.loss().item();
    CHECK(loss < before);
    before = loss;
    CHECK(same_bits(all(found), run_whole(model, input, square_sum).gradients));
    CHECK(same_bits(found.parameters[layers.parameter(2, 1)], all(found)[7]));
    optimizer->step(found.parameters);
  }
}

/// The error of gradients caused by rounding the activations, relative to the largest element.
double difference(std::span<const Tensor> a, std::span<const Tensor> b) {
  double most = 0;
  double largest = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    for (std::int64_t i = 0; i < a[k].elements(); ++i) {
      most = std::max(most, std::abs(a[k].at(i) - b[k].at(i)));
      largest = std::max(largest, std::abs(b[k].at(i)));
    }
  }
  return most / largest;
}

TEST_CASE("at half width gradients are those of a trajectory nearby, and the output is exact") {
  const auto [dtype, codec, least, most] =
      GENERATE(Catch::Generators::table<DType, Codec, double, double>(
          {{DType::f32, Codec::half, 1e-4, 3e-2},
           {DType::f32, Codec::half_f16, 1e-5, 4e-3},
           {DType::f64, Codec::half, 1e-10, 1e-6}}));
  const LayerModel model = perceptron(6, 8, dtype);
  const Tensor input = Tensor::uniform({5, 8}, 1, -1, 1, dtype);
  const Whole whole = run_whole(model, input, square_sum);
  for (const LayerCheckpointing& given : configurations(false)) {
    if (given.codec != codec) continue;
    CAPTURE(static_cast<int>(given.mode), given.interval.value_or(0), given.layers,
            given.memory_fraction.value_or(0));
    LayerCheckpointer layers(model, given);
    CHECK(same_bits(layers.forward(input), whole.activations.back()));
    const double error = difference(all(layers.backward(square_sum)), whole.gradients);
    CHECK(error < most);
    const bool rounds =
        layers.use().kept_activations > 0 && given.mode != LayerCheckpointing::Mode::dynamic;
    if (rounds) CHECK(error > least);
  }
}

TEST_CASE("half width gives the exact gradient of the rounded trajectory") {
  const LayerModel model = perceptron(4, 8);
  const Tensor input = Tensor::uniform({5, 8}, 1);
  LayerCheckpointer layers(
      model, {.mode = LayerCheckpointing::Mode::listed, .layers = {2}, .codec = Codec::half});
  const Tensor output = layers.forward(input);
  const Tensor adjoint = Tensor::uniform(output.shape(), 4);
  const std::vector<Tensor> found = all(layers.backward(adjoint));
  // Expected by hand: the last two layers from the input of layer 2, rounded to bf16.
  const Tensor exact = run_whole(model, input, square_sum).activations[2];
  const Tensor rounded = exact.to(DType::bf16).to(DType::f32);
  CHECK(!same_bits(rounded, exact));
  CHECK(same_bits(layers.activation(2), rounded));
  LayerModel rest = model;
  rest.layer.parameters.erase(rest.layer.parameters.begin(), rest.layer.parameters.begin() + 2);
  Tape tape;
  const Var weight = tape.constant(adjoint);
  const Var x = tape.parameter(rounded);
  Var y = x;
  std::vector<Var> parameters;
  for (const auto& layer : rest.layer.parameters) {
    const Var own[] = {tape.parameter(layer[0]), tape.parameter(layer[1]),
                       tape.parameter(layer[2])};
    parameters.insert(parameters.end(), std::begin(own), std::end(own));
    y = rest.layer.forward(y, own, 0);
  }
  const Gradients by_hand = backward(sum(y * weight));
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    CHECK(same_bits(found[6 + i], by_hand[parameters[i]]));
  }
}

}  // namespace
}  // namespace palimpsest::gradients_test
