#include <functional>

#include "nn/nn.h"
#include "palimpsest.h"
#include "tests/catch.h"

namespace palimpsest::layers_test {
namespace {

using Catch::Matchers::Contains;

/// The value of `layer` at x on a fresh tape.
template <class Layer>
Tensor at(const Layer& layer, const Tensor& x) {
  Tape tape;
  return layer(tape.constant(x)).value();
}

}  // namespace

TEST_CASE("layers compute their operations") {
  nn::Parameters p(3, DType::f64);
  Tape tape;
  const auto normal = [&](const Shape& shape, std::uint64_t seed) {
    return tape.constant(Tensor::normal(shape, seed, 0, 1, DType::f64));
  };
  // The layer records its parameters before `expected` finds them.
  const auto check = [&](const Var& made, const std::function<Var()>& find) {
    const Var expected = find();
    CHECK(made.shape() == expected.shape());
    CHECK(same_bits(made.value(), expected.value()));
  };
  const auto on = [&](const char* name) { return p[name].on(tape); };

  const Var x = normal({5, 4}, 1);
  check(nn::Linear(p / "linear", 4, 3)(x),
        [&] { return linear(x, on("linear/weight"), on("linear/bias")); });
  check(nn::Linear(p / "plain", 4, 3, {.bias = false})(x),
        [&] { return linear(x, on("plain/weight")); });
  check(nn::LayerNorm(p / "layer", 4)(x),
        [&] { return layer_norm(x, on("layer/weight"), on("layer/bias")); });
  check(nn::RmsNorm(p / "rms", 4)(x), [&] { return rms_norm(x, on("rms/weight")); });
  check(nn::Residual{nn::Linear(p / "residual", 4, 4)}(x),
        [&] { return x + linear(x, on("residual/weight"), on("residual/bias")); });
  const nn::Sequential two(
      nn::Linear(p / "a", 4, 8), [](const Var& y) { return relu(y); }, nn::Linear(p / "b", 8, 2));
  check(two(x), [&] {
    return linear(relu(linear(x, on("a/weight"), on("a/bias"))), on("b/weight"), on("b/bias"));
  });

  const nn::Stack<nn::Linear> three(p / "stack", 3, 4, 4);
  check(three(x), [&] {
    Var y = x;
    for (const std::string i : {"0", "1", "2"}) {
      y = linear(y, on(("stack/" + i + "/weight").c_str()), on(("stack/" + i + "/bias").c_str()));
    }
    return y;
  });
  CHECK(three.layers().size() == 3);
  CHECK(nn::Stack<nn::Linear>(p / "empty", 0, 4, 4)(x) == x);

  const Var image = normal({2, 4, 6, 6}, 2);
  const nn::Conv2d convolution(p / "conv", 4, 6, 3,
                               {.convolution = {.stride = 2, .padding = 1, .groups = 2}});
  check(convolution(image), [&] {
    return conv2d(image, on("conv/weight"), on("conv/bias"),
                  {.stride = 2, .padding = 1, .groups = 2});
  });
  CHECK(p["conv/weight"].tensor().shape() == Shape{6, 2, 3, 3});
  check(nn::Conv1d(p / "conv1", 4, 2, 3)(normal({2, 4, 9}, 3)),
        [&] { return conv1d(normal({2, 4, 9}, 3), on("conv1/weight"), on("conv1/bias")); });
  check(nn::Conv3d(p / "conv3", 1, 2, 2)(normal({1, 1, 3, 3, 3}, 4)),
        [&] { return conv3d(normal({1, 1, 3, 3, 3}, 4), on("conv3/weight"), on("conv3/bias")); });
  check(nn::GroupNorm(p / "group", 4, 2)(image),
        [&] { return group_norm(image, 2, on("group/weight"), on("group/bias")); });

  const Var ids = tape.constant(Tensor::from<std::int64_t>({2, 0, 1, 2}, {2, 2}));
  check(nn::Embedding(p / "table", 3, 5)(ids), [&] { return embedding(on("table/weight"), ids); });

  const Var sequence = normal({3, 2, 4}, 5);
  const Var zeros = tape.constant(Tensor::zeros({2, 6}, DType::f64));
  const nn::Lstm lstm_layer(p / "lstm", 4, 6);
  check(lstm_layer(sequence).outputs, [&] {
    return lstm(sequence, {zeros, zeros},
                {.input = on("lstm/input"), .hidden = on("lstm/hidden"), .bias = on("lstm/bias")})
        .outputs;
  });
  const nn::Gru gru_layer(p / "gru", 4, 6);
  check(gru_layer(sequence).h, [&] {
    return gru(sequence, zeros,
               {.input = on("gru/input"),
                .hidden = on("gru/hidden"),
                .bias = on("gru/bias"),
                .hidden_bias = on("gru/hidden_bias")})
        .h;
  });
  const nn::Rnn rnn_layer(p / "rnn", 4, 6, CellActivation::relu);
  check(rnn_layer(sequence, zeros).outputs, [&] {
    return rnn(sequence, zeros,
               {.input = on("rnn/input"), .hidden = on("rnn/hidden"), .bias = on("rnn/bias")},
               CellActivation::relu)
        .outputs;
  });

  const nn::Attention attention(p / "attention", 4, 2, {.causal = true});
  const auto of = [&](const char* name) {
    return std::pair(on((std::string("attention/") + name + "/weight").c_str()),
                     on((std::string("attention/") + name + "/bias").c_str()));
  };
  check(attention(sequence), [&] {
    return multi_head_attention(sequence,
                                {.query = of("query").first,
                                 .key = of("key").first,
                                 .value = of("value").first,
                                 .output = of("output").first,
                                 .query_bias = of("query").second,
                                 .key_bias = of("key").second,
                                 .value_bias = of("value").second,
                                 .output_bias = of("output").second},
                                2, {.causal = true});
  });
}

TEST_CASE("dropout and batch norm depend on whether the container is in training") {
  nn::Parameters p(1);
  const nn::Dropout dropout(p, 0.5);
  const Tensor x = Tensor::ones({64});
  CHECK_FALSE(same_bits(at(dropout, x), x));
  p.set_training(false);
  CHECK(same_bits(at(dropout, x), x));
  const nn::BatchNormLayer norm(p / "norm", 3);
  const Tensor batch = Tensor::normal({4, 3, 2}, 1);
  Tape tape;
  const Var made = norm(tape.constant(batch));
  CHECK(tape.updates().empty());
  CHECK(same_bits(made.value(),
                  batch_norm(tape.constant(batch), norm.mean.on(tape), norm.variance.on(tape),
                             norm.weight.on(tape), norm.bias.on(tape))
                      .value()));
}

TEST_CASE("running statistics follow the batches as in PyTorch") {
  nn::Parameters p(1, DType::f64);
  const nn::BatchNormLayer norm(p, 2, {.momentum = 0.25});
  double mean = 0, variance = 1;
  Tape tape;
  for (std::uint64_t step = 0; step < 3; ++step) {
    tape.clear();
    const Tensor x = Tensor::normal({5, 2}, step, 1, 2, DType::f64);
    backward(sum(square(norm(tape.constant(x)))));
    double sum = 0, square = 0;
    for (std::int64_t i = 0; i < 5; ++i) sum += x.at(2 * i);
    for (std::int64_t i = 0; i < 5; ++i)
      square += (x.at(2 * i) - sum / 5) * (x.at(2 * i) - sum / 5);
    mean = 0.75 * mean + 0.25 * sum / 5;
    variance = 0.75 * variance + 0.25 * square / 4;  // unbiased
    CHECK(std::abs(norm.mean.tensor().at(0) - mean) < 1e-12);
    CHECK(std::abs(norm.variance.tensor().at(0) - variance) < 1e-12);
  }
}

TEST_CASE("a normalized weight starts as its initial value, and its norms are parameters") {
  nn::Parameters p(1, DType::f64);
  const nn::WeightNorm norm(p, {3, 2}, nn::init::normal(1), {}, 1);
  CHECK(norm.magnitude.tensor().shape() == Shape{2});
  Tape tape;
  const Var w = norm.on(tape.constant(Tensor::ones({1})));
  CHECK(max(abs(w - norm.direction.on(tape))).item() < 1e-15);
  const Tensor doubled = norm.magnitude.tensor();
  for (double& x : doubled.data<double>()) x *= 2;
  Tape other;
  const Var twice = norm.on(other.constant(Tensor::ones({1})));
  CHECK(max(abs(twice - 2.0 * norm.direction.on(other))).item() < 1e-15);
  CHECK_THROWS_AS(nn::WeightNorm(p / "b", {3}, nn::init::ones(), {}, 1), ShapeError);
  CHECK_THROWS_WITH(nn::WeightNorm(p / "c", {3}, nn::init::ones(), {}, 1),
                    Catch::Matchers::Contains("layers_test.cpp"));
}

TEST_CASE("spectral norms improve their vector once per step in training") {
  nn::Parameters p(1, DType::f64);
  const nn::SpectralNormLayer norm(p, {3, 4}, nn::init::normal(1), {});
  const Tensor first = norm.u.tensor().clone();
  const auto loss = [&](Tape& tape) { return sum(square(norm.on(tape.constant(first)))); };
  Tape tape;
  backward(loss(tape));
  CHECK_FALSE(same_bits(norm.u.tensor(), first));
  const Tensor improved = norm.u.tensor().clone();
  p.set_training(false);
  tape.clear();
  backward(loss(tape));
  CHECK(same_bits(norm.u.tensor(), improved));
  for (int step = 0; step < 50; ++step) {
    p.set_training(true);
    tape.clear();
    backward(loss(tape));
  }
  tape.clear();
  const Var largest = max(svdvals(norm.on(tape.constant(first))));
  CHECK(std::abs(largest.item() - 1) < 1e-9);
}

TEST_CASE("attention with fewer heads of keys has smaller projections") {
  nn::Parameters p;
  const nn::Attention grouped(p / "a", 12, 6, {.key_heads = 2});
  CHECK(grouped.key.weight.tensor().shape() == Shape{12, 4});
  CHECK(grouped.value.weight.tensor().shape() == Shape{12, 4});
  Tape tape;
  CHECK(grouped(tape.constant(Tensor::ones({2, 5, 12}))).shape() == Shape{2, 5, 12});
  CHECK_THROWS_WITH(nn::Attention(p / "b", 12, 6, {.key_heads = 4}),
                    Contains("4 heads of keys do not divide 6"));
}

TEST_CASE("settings of layers out of range are errors") {
  nn::Parameters p;
  CHECK_THROWS_WITH(nn::Dropout(p, 1), Contains("less than 1"));
  CHECK_THROWS_WITH(nn::Attention(p / "a", 5, 2), Contains("do not divide"));
  CHECK_THROWS_WITH(nn::Conv2d(p / "c", 3, 4, 3, {.convolution = {.groups = 2}}),
                    Contains("do not divide"));
  CHECK_THROWS_WITH(nn::BatchNormLayer(p / "b", 3, {.momentum = 2}), Contains("from 0 to 1"));
  const nn::Rnn rnn_layer(p / "r", 3, 4);
  Tape tape;
  CHECK_THROWS_AS(rnn_layer(tape.constant(Tensor::ones({3}))), ShapeError);
  // Errors have the line that calls the layer.
  const nn::Sequential layers(nn::LayerNorm(p / "norm", 3), nn::Linear(p / "linear", 4, 2));
  CHECK_THROWS_WITH(layers(tape.constant(Tensor::ones({2, 3}))), Contains("layers_test.cpp"));
  const nn::Stack<nn::Linear> stack(p / "stack", 2, 4, 3);
  CHECK_THROWS_WITH(stack(tape.constant(Tensor::ones({2, 4}))), Contains("layers_test.cpp"));
}

}  // namespace palimpsest::layers_test
