#include <stdexcept>

#include "checkpoint/plan.h"
#include "strategy/training/sgd.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/strategy/execution/layer_checkpointing/models.h"

namespace palimpsest::failure_test {
namespace {

using Mode = LayerCheckpointing::Mode;

/// Checks that `f` throws an error of type `E` whose message contains all of `words`.
template <class E, class F>
void check_throws(F f, std::initializer_list<std::string> words) {
  std::string message;
  try {
    f();
  } catch (const E& error) {
    message = error.what();
  }
  for (const std::string& word : words) CHECK_THAT(message, Catch::Matchers::Contains(word));
}

/// How the layers fail.
enum class Fault { none, users, shape, foreign, integers, parameter };

/// A perceptron whose layer 3 fails as `fault` says.
LayerModel faulty(const std::shared_ptr<Fault>& fault) {
  LayerModel model = perceptron(5, 8);
  model.layer.forward = [fault, sound = model.layer.forward](const Var& x, std::span<const Var> w,
                                                             int layer) -> Var {
    if (layer != 3) return sound(x, w, layer);
    switch (*fault) {
      case Fault::none:
        return sound(x, w, layer);
      case Fault::users:
        throw std::runtime_error("out of paper");
      case Fault::shape:
        return matmul(x, x);
      case Fault::foreign:
        return {};
      case Fault::integers:
        return cast(x, DType::i32);
      case Fault::parameter:
        return x * x.tape().parameter(Tensor::scalar(2));
    }
    return {};
  };
  return model;
}

template <class F>
void check_fault(Fault fault, F f) {
  switch (fault) {
    case Fault::users:
      return check_throws<std::runtime_error>(f, {"out of paper"});
    case Fault::shape:
      return check_throws<ShapeError>(f, {"[layers] layer 3: [matmul]", "failure_test.cpp"});
    case Fault::foreign:
      return check_throws<TapeError>(f, {"[layers] layer 3: ", "did not return a value"});
    case Fault::integers:
      return check_throws<DTypeError>(
          f, {"[layers] layer 3: ", "i32", "floating", "failure_test.cpp:"});
    case Fault::parameter:
      return check_throws<ArgumentError>(
          f, {"[layers] layer 3: ", "records parameter layer3/", "failure_test.cpp:"});
    case Fault::none:
      f();
  }
}

TEST_CASE("a layer that fails is named, and what is held stays usable") {
  const auto fault = std::make_shared<Fault>(Fault::none);
  const Fault how =
      GENERATE(Fault::users, Fault::shape, Fault::foreign, Fault::integers, Fault::parameter);
  const Tensor input = Tensor::uniform({5, 8}, 1);
  for (const LayerCheckpointing& given :
       {LayerCheckpointing{.mode = Mode::none},
        LayerCheckpointing{.mode = Mode::every, .interval = 2},
        LayerCheckpointing{.mode = Mode::dynamic, .memory_fraction = 0.8}}) {
    CAPTURE(static_cast<int>(how), static_cast<int>(given.mode));
    *fault = Fault::none;
    LayerCheckpointer layers(faulty(fault), given);
    const Tensor output = layers.forward(input);
    const std::vector<Tensor> expected = all(layers.backward(square_sum));
    // After a failure in the forward pass, nothing is kept.
    *fault = how;
    if (given.mode != Mode::dynamic) {
      check_fault(how, [&] { layers.forward(input); });
      CHECK(layers.meter().live() == 0);
      CHECK_THROWS_AS(layers.backward(square_sum), ArgumentError);
      *fault = Fault::none;
      layers.forward(input);
    }
    // After a failure in the backward pass, everything is kept except tapes that have been used.
    const Bytes kept = layers.meter().live();
    const Bytes left = given.mode == Mode::every ? 2 * input.bytes() : kept;
    *fault = how;
    if (given.mode == Mode::every) {
      check_fault(how, [&] { layers.backward(square_sum); });
      CHECK(layers.meter().live() == left);
    }
    *fault = Fault::none;
    CHECK(same_bits(all(layers.backward(square_sum)), expected));
    CHECK(layers.meter().live() == left);
  }
}

TEST_CASE("activations of parameters that have changed since are refused") {
  const Tensor input = Tensor::uniform({5, 8}, 1);
  LayerCheckpointer layers(perceptron(5, 8), {.mode = Mode::every, .interval = 2});
  layers.forward(input);
  const LayerGradients first = layers.backward(square_sum);
  sgd({.learning_rate = 0.1})->step(first.parameters);
  const std::initializer_list<std::string> words = {"[layers] Optimizer::step", "parameter 0 of ",
                                                    "layer 0", "call forward() again"};
  check_throws<TapeError>([&] { layers.backward(square_sum); }, words);
  check_throws<TapeError>([&] { layers.activation(1); }, words);
  check_throws<TapeError>([&] { layers.save(1); }, words);
  CHECK(layers.activation(0).shape() == input.shape());  // kept
  layers.forward(input);
  CHECK_FALSE(same_bits(layers.backward(square_sum).parameters.loss(), first.parameters.loss()));
}

TEST_CASE("a layer that makes another type when it is computed again is named") {
  LayerModel model = perceptron(5, 8);
  const auto calls = std::make_shared<int>(0);
  model.layer.forward = [calls, sound = model.layer.forward](const Var& x, std::span<const Var> w,
                                                             int layer) {
    const Var y = sound(x, w, layer);
    return layer == 3 && ++*calls > 1 ? cast(y, DType::f64) : y;
  };
  LayerCheckpointer layers(model, {.mode = Mode::every, .interval = 2});
  layers.forward(Tensor::uniform({5, 8}, 1));
  check_throws<ArgumentError>(
      [&] { layers.backward(square_sum); },
      {"[layers] layer 3: ", "f64 (5, 8)", "f32 (5, 8)", "failure_test.cpp:"});
}

TEST_CASE("a kernel that fails is named by its layer") {
  const Tensor input = Tensor::uniform({5, 8}, 1);
  LayerModel model = transformer(3, 8);
  model.feed_forward.forward = [sound = model.feed_forward.forward](
                                   const Var& x, std::span<const Var> w, int layer) {
    return layer == 1 ? x / 0.0 : sound(x, w, layer).output;
  };
  LayerCheckpointer layers(model, {.mode = Mode::every, .interval = 2}, {.anomaly = true});
  check_throws<AnomalyError>([&] { layers.forward(Tensor::normal({2, 6, 8}, 1)); },
                             {"[layers] layer 1, feed_forward: "});
  CHECK(layers.meter().live() == 0);
}

TEST_CASE("a loss that fails is named") {
  LayerCheckpointer layers(perceptron(3, 8), {.mode = Mode::none});
  layers.forward(Tensor::uniform({5, 8}, 1));
  check_throws<ShapeError>([&] { layers.backward([](const Var& y) { return y; }); },
                           {"[layers] the loss: ", "one element"});
  check_throws<ArgumentError>(
      [&] {
        layers.backward(
            [](const Var& y) { return sum(y * y.tape().parameter(Tensor::scalar(1))); });
      },
      {"[layers] the loss: ", "parameter"});
  check_throws<ArgumentError>(
      [&] { layers.backward(std::function<Var(const Var&)>()); },
      {"[layers] the loss is an empty function; give one that records a loss of the output"});
}

TEST_CASE("a model that is none is refused") {
  const auto refused = [](const LayerModel& model, const std::string& words) {
    check_error([&] { LayerCheckpointer(model, {}); }, {"[layers]", words});
  };
  refused({}, "a function is missing");
  refused({.attention = perceptron(2, 4).layer}, "a function is missing");
  refused({.layer = {.parameters = perceptron(2, 4).layer.parameters}}, "a function is missing");
  refused({.layer = {.forward = perceptron(2, 4).layer.forward}}, "there are no layers");
  refused({.layer = perceptron(2, 4).layer, .attention = perceptron(2, 4).layer},
          "give only one of them");
  refused({.layer = {.parameters = {{}}},
           .attention = perceptron(2, 4).layer,
           .feed_forward = perceptron(2, 4).layer},
          "give only one of them");
  refused({.attention = perceptron(2, 4).layer, .feed_forward = perceptron(3, 4).layer},
          "of 2 layers, but feed_forward of 3");
  LayerModel model = perceptron(2, 4);
  model.layer.parameters[1][0] = Tensor::arange(3);
  refused(model, "layer 1: a parameter is i64 (3)");
  model.layer.parameters[1][0] = Tensor();
  refused(model, "layer 1: ");
  check_error([] { LayerCheckpointer(perceptron(2, 4), {.mode = Mode::every}); },
              {"needs an interval"});
  check_error([] { LayerCheckpointer(perceptron(2, 4), {.mode = Mode::listed, .layers = {2}}); },
              {"layer 2 is listed", "layers are numbered from 0 to 1"});
}

TEST_CASE("what is not there cannot be asked for") {
  LayerCheckpointer layers(perceptron(3, 8), {.mode = Mode::every, .interval = 1});
  const Tensor adjoint = Tensor::uniform({5, 8}, 1);
  check_error([&] { layers.backward(adjoint); }, {"call forward() first"});
  check_error([&] { layers.activation(1); }, {"call forward() first"});
  check_error([&] { layers.forward(Tensor()); }, {"the input is empty; give a tensor"});
  layers.forward(Tensor::uniform({5, 8}, 1));
  check_error([&] { layers.activation(4); },
              {"there is no layer 4; layers are numbered from 0 to 2, and 3 means the output"});
  check_error([&] { layers.activation(-1); }, {"there is no layer -1"});
  check_error([&] { layers.activation(0, static_cast<Sublayer>(77)); }, {"the part is 77"});
  check_error([&] { layers.activation(1, Sublayer::feed_forward); },
              {"no feed-forward sublayers; leave the sublayer out"});
  check_error([&] { layers.parameter(3, 0); },
              {"there is no layer 3; layers are numbered from 0 to 2"});
  check_error([&] { layers.parameter(2, 3); },
              {"layer 2 has no parameter 3; they are numbered from 0 to 2"});
  check_throws<ShapeError>([&] { layers.backward(Tensor::uniform({8, 5}, 1)); },
                           {"f32 (5, 8)", "f32 (8, 5)"});
  check_throws<DTypeError>([&] { layers.backward(adjoint.to(DType::f64)); }, {"convert it"});
  layers.release();
  check_error([&] { layers.backward(adjoint); }, {"call forward() first"});
}

TEST_CASE("a fraction that is too small is refused before any work, naming one that is not") {
  const LayerModel model = perceptron(6, 8);
  const Tensor input = Tensor::uniform({5, 8}, 1);
  LayerCheckpointing given{.mode = Mode::dynamic, .memory_fraction = 0.2};
  LayerCheckpointer layers(model, given);
  Bytes smallest = 0;
  Bytes budget = 0;
  double advised = 0;
  try {
    layers.forward(input);
  } catch (const BudgetError& error) {
    smallest = error.smallest_feasible();
    budget = error.budget();
    const std::string message = error.what();
    const std::string before = "raise memory_fraction to ";
    REQUIRE_THAT(message, Catch::Matchers::Contains(before));
    advised = std::stod(message.substr(message.find(before) + before.size()));
  }
  REQUIRE(smallest > budget);
  given.memory_fraction = advised;
  CHECK(LayerCheckpointer(model, given).forecast(input.type()).use.peak == smallest);
  given.memory_fraction = 1;
  const auto keep_all =
      static_cast<double>(LayerCheckpointer(model, given).forecast(input.type()).keep_all);
  given.memory_fraction = (static_cast<double>(smallest) + 0.5) / keep_all;
  CHECK(LayerCheckpointer(model, given).forecast(input.type()).use.peak == smallest);
  given.memory_fraction = (static_cast<double>(smallest) - 0.5) / keep_all;
  CHECK_THROWS_AS(LayerCheckpointer(model, given).forecast(input.type()), BudgetError);
}

TEST_CASE("numbers that half width cannot hold are refused, naming the layer") {
  LayerModel model = perceptron(3, 8);
  model.layer.forward = [](const Var& x, std::span<const Var>, int) { return x * 1000.0; };
  const Tensor input = Tensor::ones({5, 8});
  const LayerCheckpointing given{.mode = Mode::every, .interval = 1, .codec = Codec::half_f16};
  LayerCheckpointer layers(model, given);
  check_throws<ArgumentError>([&] { layers.forward(input); }, {"[layers] the input of layer 2: "});
  CHECK(layers.meter().live() == 0);
}

TEST_CASE("layers that look at values cannot be measured") {
  LayerModel model = perceptron(3, 8);
  model.layer.forward = [sound = model.layer.forward](const Var& x, std::span<const Var> w,
                                                      int layer) {
    return sum(x).item() > 1e9 ? x : sound(x, w, layer).output;
  };
  const Tensor input = Tensor::uniform({5, 8}, 1);
  LayerCheckpointer layers(model, {.mode = Mode::dynamic, .memory_fraction = 0.9});
  check_throws<ArgumentError>([&] { layers.forward(input); },
                              {"[layers] layer 0: ", "reads the value of", "failure_test.cpp:"});
  check_throws<ArgumentError>([&] { layers.forecast(input.type()); }, {"reads the value of"});
}

/// Trains a model of one weight for a step. Then its memory is free.
void train_another_model() {
  const Tensor weight = Tensor::ones({64, 64});
  Tape tape;
  sgd({.learning_rate = 0.1})->step(backward(sum(square(tape.parameter(weight)))));
}

TEST_CASE("other models may be trained between forward and backward") {
  const Tensor input = Tensor::uniform({64, 64}, 1, -1, 1);
  std::vector<LayerCheckpointing> all{{},
                                      {.mode = Mode::every, .interval = 3},
                                      {.mode = Mode::listed, .layers = {2}},
                                      {.mode = Mode::dynamic, .memory_fraction = 0.7}};
  for (std::size_t i = 1; i < 4; ++i) {
    all.push_back(all[i]);
    all.back().codec = Codec::half;
  }
  for (const LayerCheckpointing& given : all) {
    CAPTURE(given);
    LayerCheckpointer layers(perceptron(6, 64), given);
    for (int i = 0; i < 10; ++i) {
      const Tensor output = layers.forward(input);
      train_another_model();
      for (int k = 1; k < 6; ++k) CHECK_NOTHROW(layers.activation(k));
      train_another_model();
      CHECK_NOTHROW(layers.backward(output));
      train_another_model();
      CHECK_NOTHROW(layers.backward(output));
    }
  }
}

}  // namespace
}  // namespace palimpsest::failure_test
