#include <atomic>
#include <cmath>
#include <sstream>

#include "autodiff/custom.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/strategy/execution/layer_checkpointing/models.h"

namespace palimpsest::accounts_test {
namespace {

using Mode = LayerCheckpointing::Mode;

/// Checks that measurements equal the forecast: after the forward pass, at the peak, and for each
/// layer.
void check_forecast(const LayerModel& model, const Tensor& input, const LayerCheckpointing& given) {
  CAPTURE(static_cast<int>(given.mode), given.interval.value_or(0), given.layers,
          given.memory_fraction.value_or(0), given.max_kept.value_or(-1),
          static_cast<int>(given.codec), given.sublayers.attention, given.sublayers.feed_forward);
  LayerCheckpointer layers(model, given);
  const LayerForecast forecast = layers.forecast(input.type());
  const Tensor output = layers.forward(input);
  CHECK(layers.use().kept == forecast.use.kept);
  CHECK(layers.meter().live() == forecast.use.kept);
  for (int repetition = 1; repetition <= 2; ++repetition) {
    layers.backward(output);
    const bool gives_up = given.mode == Mode::every || given.mode == Mode::listed;
    if (gives_up) CHECK(layers.meter().live() <= forecast.use.kept);
    if (!gives_up) CHECK(layers.meter().live() == forecast.use.kept);
    CHECK(layers.meter().peak() == forecast.use.peak);
    if (repetition == 1) CHECK(layers.use() == forecast.use);
  }
  if (given.max_kept) CHECK(forecast.use.kept_activations <= *given.max_kept);
  if (given.mode == Mode::none) {
    CHECK(forecast.use.peak == forecast.keep_all);
    CHECK(forecast.compute_factor == 1);
    CHECK(forecast.saved_fraction() == 0);
  }
  if (given.mode == Mode::dynamic) {
    CHECK(forecast.saved_fraction() >= 1 - *given.memory_fraction);
  }
  layers.release();
  CHECK(layers.meter().live() == 0);
}

TEST_CASE("bytes held and passes are those forecast, whatever is kept") {
  SECTION("of a perceptron") {
    const DType dtype = GENERATE(DType::f32, DType::f64, DType::bf16);
    const LayerModel model = perceptron(6, 8, dtype);
    for (const LayerCheckpointing& given : configurations(false)) {
      check_forecast(model, Tensor::uniform({5, 8}, 1, -1, 1, dtype), given);
    }
  }
  SECTION("of a transformer") {
    const LayerModel model = transformer(5, 8);
    for (const LayerCheckpointing& given : configurations(true)) {
      check_forecast(model, Tensor::normal({2, 6, 8}, 1), given);
    }
  }
  SECTION("of layers of every kind") {
    for (const LayerCheckpointing& given : configurations(false)) {
      if (given.memory_fraction.value_or(1) < 0.8) continue;
      check_forecast(odd_layers(), Tensor::normal({6, 4}, 5), given);
    }
  }
}

TEST_CASE("bytes are those counted by hand") {
  const std::int64_t rows = 5;
  const std::int64_t width = 8;
  const Bytes activation = rows * width * 4;
  const Bytes tape = 3 * activation + activation;  // the intermediate values and the output
  const LayerModel model = perceptron(6, width);
  const Tensor input = Tensor::uniform({rows, width}, 1);
  const auto forecast = [&](const LayerCheckpointing& given) {
    return LayerCheckpointer(model, given).forecast(input.type());
  };
  SECTION("every layer's input") {
    const LayerForecast found = forecast({.mode = Mode::every, .interval = 1});
    CHECK(found.keep_all == 6 * tape);
    CHECK(found.use.kept == 5 * activation + tape);  // the tape of the last layer
    CHECK(found.use.kept_activations == 5);
    CHECK(found.use.peak == 5 * activation + tape);
    CHECK(found.saved() == found.keep_all - found.use.peak);
  }
  SECTION("every second layer's input") {
    const LayerForecast found = forecast({.mode = Mode::every, .interval = 2});
    CHECK(found.use.kept == 2 * activation + 2 * tape);
    CHECK(found.use.peak == 2 * activation + 2 * tape);
  }
  SECTION("at half width, where an activation is widened while it is used") {
    const LayerForecast found =
        forecast({.mode = Mode::every, .interval = 2, .codec = Codec::half});
    CHECK(found.use.kept == activation);
    CHECK(found.use.peak == activation + activation + 2 * tape);
  }
  SECTION("no more than a number of inputs") {
    const LayerForecast found = forecast({.mode = Mode::every, .interval = 1, .max_kept = 2});
    CHECK(found.use.kept_activations == 2);
    CHECK(found.use.peak == 2 * activation + 2 * tape);
  }
}

TEST_CASE("numbers in every place are made where they are read, not held") {
  const LayerModel model{.layer = {.parameters = std::vector<std::vector<Tensor>>(3),
                                   .forward = [](const Var& x, std::span<const Var>, int) {
                                     return x * full_like(x, 2);
                                   }}};
  const LayerForecast forecast = LayerCheckpointer(model, {}).forecast({Shape{10}, DType::f32});
  CHECK(forecast.keep_all == 2 * 40);  // outputs that another layer reads
  check_forecast(model, Tensor::uniform({10}, 1), {});
}

/// Layers x → 4x of two operations that count their runs and have their own costs. The adjoint of
/// each reads its input, so the result of the second operation is only the layer's output.
class Counted {
 public:
  explicit Counted(int layers)
      : forward_(std::make_shared<Counts>(2 * layers)),
        backward_(std::make_shared<Counts>(2 * layers)) {}

  static double flops(int operation) { return 1e9 * (operation + 1); }
  int forward(int operation) const { return (*forward_)[static_cast<std::size_t>(operation)]; }
  int backward(int operation) const { return (*backward_)[static_cast<std::size_t>(operation)]; }

  /// 2x.
  Var twice(const Var& x, int operation) const {
    CustomDefinition definition = doubling(forward_, operation, flops(operation));
    definition.vjp = [counts = backward_, operation](const Pullback& p) {
      const CustomOperation back(doubling(counts, operation, 2 * flops(operation)));
      p.set(0, back({p.adjoint(), p.input()}));
    };
    return CustomOperation(definition)({x});
  }
  LayerModel model() const {
    const Counted counts = *this;
    return {.layer = {.parameters = std::vector<std::vector<Tensor>>(forward_->size() / 2),
                      .forward = [counts](const Var& x, std::span<const Var>, int layer) {
                        return counts.twice(counts.twice(x, 2 * layer), 2 * layer + 1);
                      }}};
  }

 private:
  using Counts = std::vector<std::atomic<int>>;

  static CustomDefinition doubling(const std::shared_ptr<Counts>& counts, int operation,
                                   double flops) {
    return {.name = "twice",
            .forward =
                [counts, operation](const CustomCall& call) {
                  ++(*counts)[static_cast<std::size_t>(operation)];
                  const auto from = call.inputs[0].data<float>();
                  const auto to = call.outputs[0].data<float>();
                  for (std::size_t i = 0; i < to.size(); ++i) to[i] = 2 * from[i];
                },
            .cost = [flops](const NodeView&) { return Cost{flops, 0}; }};
  }

  std::shared_ptr<Counts> forward_;
  std::shared_ptr<Counts> backward_;
};

TEST_CASE("kernels run as often as forecast, and the compute factor is that of their costs") {
  const Tensor input = Tensor::uniform({10}, 1);
  for (const LayerCheckpointing& given : configurations(false)) {
    CAPTURE(static_cast<int>(given.mode), given.interval.value_or(0), given.layers,
            given.memory_fraction.value_or(0));
    const Counted counts(6);
    LayerCheckpointer layers(counts.model(), given, {.machine = {.seconds_per_node = 0}});
    const LayerForecast forecast = layers.forecast(input.type());
    const Tensor output = layers.forward(input);
    layers.backward(output);
    double seconds = 0;
    double one_pass = 0;
    for (int i = 0; i < 12; ++i) {
      if (i % 2 == 0) {
        CHECK(counts.forward(i) == forecast.use.forward_passes[static_cast<std::size_t>(i / 2)]);
      }
      CHECK(counts.backward(i) == 1);
      seconds += Counted::flops(i) * (counts.forward(i) + 2 * counts.backward(i));
      one_pass += 3 * Counted::flops(i);
    }
    CHECK(std::abs(forecast.compute_factor - seconds / one_pass) < 1e-12);
  }
}

TEST_CASE("variables with one adjoint have it computed once") {
  const Counted counts(1);
  const LayerModel model{.layer = {.parameters = weights(2, {{10}}, 1),
                                   .forward = [&](const Var& x, std::span<const Var> w, int layer) {
                                     return counts.twice(x + w[0], layer);
                                   }}};
  LayerCheckpointer layers(model, {});
  const Tensor adjoint = Tensor::uniform({10}, 2);
  layers.forward(Tensor::uniform({10}, 1));
  const LayerGradients found = layers.backward(adjoint);
  CHECK(counts.backward(0) == 1);
  CHECK(counts.backward(1) == 1);
  CHECK(same_bits(found.parameters[layers.parameter(0, 0)], found.input));
  CHECK(found.input.at(3) == 4 * adjoint.at(3));
}

TEST_CASE("an output that is one of several of its operation stays held with them") {
  const Counted counts(2);
  const LayerModel model{.layer = {.parameters = std::vector<std::vector<Tensor>>(3),
                                   .forward = [&](const Var& x, std::span<const Var>, int layer) {
                                     return split(concat({counts.twice(x, layer), x}, 0), {10, 10},
                                                  0)[0];
                                   }}};
  const Tensor input = Tensor::uniform({10}, 1);
  LayerCheckpointer layers(model, {});
  CHECK(layers.forecast(input.type()).keep_all == 2 * (40 + 40));
  const Tensor output = layers.forward(input);
  layers.backward(output);
  CHECK(same_bits(layers.activation(1), layers.activation(1)));
  layers.backward(output);
  for (const int layer : {0, 1, 2}) CHECK(counts.forward(layer) == 1);
  for (const LayerCheckpointing& given :
       {LayerCheckpointing{}, LayerCheckpointing{.mode = Mode::every, .interval = 2}}) {
    check_forecast(model, input, given);
  }
}

TEST_CASE("what layers of no rows save is forecast too") {
  const LayerModel model = perceptron(3, 8);
  for (const LayerCheckpointing& given :
       {LayerCheckpointing{}, LayerCheckpointing{.mode = Mode::every, .interval = 1}}) {
    check_forecast(model, Tensor::uniform({0, 8}, 1), given);
  }
}

TEST_CASE("the report adds up what the backward pass ran, what was computed again among it") {
  const Tensor input = Tensor::uniform({10}, 1);
  const bool profile = GENERATE(false, true);
  for (const LayerCheckpointing& given :
       {LayerCheckpointing{}, LayerCheckpointing{.mode = Mode::every, .interval = 2}}) {
    CAPTURE(static_cast<int>(given.mode), profile);
    const Counted counts(6);
    LayerCheckpointer layers(counts.model(), given, {.memory_budget = 10'000, .profile = profile});
    const Tensor output = layers.forward(input);
    const Report report = layers.backward(output).parameters.report();
    std::uint32_t again = 0;
    for (int i = 0; i < 12; ++i) again += static_cast<std::uint32_t>(counts.forward(i)) - 1;
    CHECK((again > 0) == (given.mode == Mode::every));
    CHECK(report.recomputed == again);
    CHECK(report.computed == again + 12);
    CHECK(report.budget == 10'000);
    CHECK(report.measured_peak >= input.bytes());
    CHECK(report.measured_peak <= report.predicted_peak);
    CHECK(report.measured_live_peak > 0);
    CHECK(report.predicted_live_peak > 0);
    CHECK(report.keep_all_peak >= report.predicted_peak);
    CHECK(report.tape_metadata > 0);
    CHECK(report.run_seconds > 0);
    REQUIRE(report.steps.size() == (profile ? report.computed : 0));
    std::int64_t last = 0;
    std::uint32_t marked = 0;
    for (const Report::Step& step : report.steps) {
      CHECK(step.event.start >= last);
      last = step.event.end;
      marked += step.recomputed;
    }
    CHECK(marked == (profile ? again : 0));
    if (profile) CHECK(report.by_operation().front().calls == report.computed);
  }
}

TEST_CASE("layers before one that lets no derivative through are left alone") {
  const Counted counts(6);
  LayerModel model = counts.model();
  model.layer.forward = [sound = model.layer.forward](const Var& x, std::span<const Var> w,
                                                      int layer) {
    return layer == 3 ? stop_gradient(x) : sound(x, w, layer).output;
  };
  const Tensor input = Tensor::uniform({10}, 1);
  LayerCheckpointer layers(model, {.mode = Mode::every, .interval = 1});
  const Tensor output = layers.forward(input);
  CHECK(same_bits(layers.backward(output).input, Tensor::zeros({10})));
  for (int i = 0; i < 12; ++i) {
    if (i / 2 == 3) continue;
    CHECK(counts.backward(i) == (i / 2 > 3));
    if (i / 2 < 3) CHECK(counts.forward(i) == 1);
  }
  for (const LayerCheckpointing& given : configurations(false)) {
    if (given.memory_fraction.value_or(1) >= 0.8) check_forecast(model, input, given);
  }
}

TEST_CASE("an activation is computed from the nearest one kept before it") {
  const LayerModel model = perceptron(7, 8);
  const Tensor input = Tensor::uniform({5, 8}, 1);
  LayerCheckpointer layers(model, {.mode = Mode::listed, .layers = {2, 5}});
  layers.forward(input);
  const std::vector<int> once(7, 1);
  const auto passes_of = [&](int layer) {
    const std::vector<int> before = layers.use().forward_passes;
    layers.activation(layer);
    std::vector<int> passes = layers.use().forward_passes;
    for (std::size_t k = 0; k < passes.size(); ++k) passes[k] -= before[k];
    return passes;
  };
  CHECK(layers.use().forward_passes == once);
  CHECK(passes_of(0) == std::vector{0, 0, 0, 0, 0, 0, 0});
  CHECK(passes_of(1) == std::vector{1, 0, 0, 0, 0, 0, 0});
  CHECK(passes_of(2) == std::vector{0, 0, 0, 0, 0, 0, 0});
  CHECK(passes_of(4) == std::vector{0, 0, 1, 1, 0, 0, 0});
  CHECK(passes_of(5) == std::vector{0, 0, 0, 0, 0, 0, 0});
  CHECK(passes_of(6) == std::vector{0, 0, 0, 0, 0, 0, 0});  // in a tape
  CHECK(passes_of(7) == std::vector{0, 0, 0, 0, 0, 0, 0});
  CHECK(layers.meter().live() == layers.use().kept);
  layers.backward(layers.activation(7));
  CHECK(passes_of(6) == std::vector{0, 0, 0, 0, 0, 1, 0});
}

TEST_CASE("the last layers keep their tapes, which cost no memory at the peak") {
  const LayerModel model = perceptron(12, 16);
  const Tensor input = Tensor::uniform({32, 16}, 1, -1, 1);
  const auto forecast = [&](const LayerCheckpointing& given) {
    return LayerCheckpointer(model, given).forecast(input.type());
  };
  const LayerForecast every = forecast({.mode = Mode::every, .interval = 6});
  CHECK(1 - every.saved_fraction() < 0.53);
  CHECK(every.compute_factor < 1.2);
  CHECK(every.use.forward_passes == std::vector{2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1});
  for (const int interval : {12, 100}) {
    const LayerForecast whole = forecast({.mode = Mode::every, .interval = interval});
    CHECK(whole.compute_factor == 1);
    CHECK(whole.use.peak == whole.keep_all);
  }
  LayerCheckpointer layers(model, {.mode = Mode::every, .interval = 6});
  layers.forward(input);
  CHECK(layers.meter().live() == every.use.kept);
  const Tensor adjoint = layers.activation(12);
  const LayerGradients first = layers.backward(adjoint);
  CHECK(layers.meter().live() == input.bytes());
  const LayerGradients second = layers.backward(adjoint);
  CHECK(layers.meter().peak() <= every.use.peak);
  CHECK(same_bits(first.input, second.input));
}

TEST_CASE("layers that are kept can be asked for and added to") {
  const LayerModel model = perceptron(8, 8);
  const Tensor input = Tensor::uniform({5, 8}, 1, -1, 1);
  for (const Codec codec : {Codec::exact, Codec::half}) {
    const LayerCheckpointing given{
        .mode = Mode::listed, .layers = {6}, .max_kept = 4, .codec = codec};
    LayerCheckpointer layers(model, given);
    CHECK(layers.checkpointing() == given);
    check_error([&] { layers.is_kept(0); }, {"[layers]", "forward()"});
    check_error([&] { layers.save(0); }, {"[layers]", "forward()"});
    const Tensor output = layers.forward(input);
    const auto kept = [&] {
      std::vector<int> numbers;
      for (int layer = 0; layer <= 8; ++layer) {
        if (layers.is_kept(layer)) numbers.push_back(layer);
      }
      return numbers;
    };
    const std::vector<int> at_first =
        codec == Codec::exact ? std::vector{0, 6, 7, 8} : std::vector{0, 6, 8};
    CHECK(kept() == at_first);
    const Tensor third = layers.activation(3);
    const Bytes before = layers.meter().live();
    layers.save(3);
    CHECK(layers.meter().live() == before + third.bytes() / (codec == Codec::exact ? 1 : 2));
    CHECK(layers.use().kept == layers.meter().live());
    CHECK(layers.use().kept_activations == 2);
    layers.save(3);
    layers.save(0);
    layers.save(7);  // stays when the tapes of the last layers are dropped
    CHECK(layers.use().kept_activations == 3);
    CHECK(kept() == std::vector{0, 3, 6, 7, 8});
    const int passes = layers.use().forward_passes[3];
    const LayerGradients first = layers.backward(output);
    CHECK(layers.use().forward_passes[3] == passes + 1);
    CHECK(kept() == std::vector{0, 3, 6, 7, 8});
    const LayerGradients second = layers.backward(output);
    CHECK(same_bits(first.input, second.input));
    if (codec == Codec::exact) {
      LayerCheckpointer all(model, {});
      all.forward(input);
      CHECK(same_bits(first.input, all.backward(output).input));
      CHECK(same_bits(layers.activation(3), third));
    }
    layers.save(1);
    check_error([&] { layers.save(2); }, {"[layers]", "4 activations", "max_kept"});
    check_error([&] { layers.save(8); }, {"[layers]", "no layer 8"});
    layers.forward(input);
    CHECK(kept() == at_first);
  }
}

TEST_CASE("mode dynamic measures again when the layers record something else") {
  bool is_training = false;
  int inner = 1;  // inside a checkpoint
  LayerModel model = perceptron(6, 16);
  model.layer.forward = [&, plain = model.layer.forward](const Var& x, std::span<const Var> w,
                                                         int layer) -> LayerOutput {
    Var y = plain(x, w, layer).output;
    const bool is_large = layer % 2 == (is_training ? 0 : 1);
    for (int i = 0; is_large && i < 5; ++i) y = tanh(cumsum(y, 0));
    return checkpoint(
        [&](const Var& v) {
          Var z = v;
          for (int i = 0; i < inner * (1 + layer); ++i) z = sin(z);
          return z;
        },
        y);
  };
  const Tensor input = Tensor::uniform({8, 16}, 1, -1, 1);
  const LayerCheckpointing given{.mode = Mode::dynamic, .memory_fraction = 0.5};
  LayerCheckpointer layers(model, given);
  for (const bool training : {false, true, false}) {
    for (const int times : {1, 3}) {
      CAPTURE(training, times);
      is_training = training;
      inner = times;
      LayerCheckpointer fresh(model, given);
      const LayerForecast expected = fresh.forecast(input.type());
      CHECK(expected.use.peak <= expected.keep_all / 2);
      layers.backward(layers.forward(input));
      CHECK(layers.use() == expected.use);
      CHECK(layers.forecast(input.type()).summary() == expected.summary());
    }
  }
}

TEST_CASE("configurations, uses and forecasts have a line each") {
  const auto line_of = [](const auto& value) {
    std::ostringstream stream;
    stream << value;
    CHECK(stream.str() == value.summary());
    return stream.str();
  };
  CHECK(line_of(LayerCheckpointing{}) == "none");
  CHECK(line_of(LayerCheckpointing{.mode = Mode::every,
                                   .interval = 2,
                                   .sublayers = {.feed_forward = true},
                                   .max_kept = 3,
                                   .codec = Codec::half}) ==
        "every 2 layers, inputs of attention and feed-forward, at most 3 kept, kept as half");
  CHECK(line_of(LayerCheckpointing{.mode = Mode::listed, .layers = {4, 1}}) == "listed 4, 1");
  CHECK(line_of(LayerCheckpointing{
            .mode = Mode::dynamic, .minimum_interval = 2, .memory_fraction = 0.4}) ==
        "dynamic, 40 % of the tapes, at least 2 layers");
  LayerForecast forecast{
      .use = {.kept = 1'024, .peak = 3'072, .kept_activations = 1, .forward_passes = {2, 1}},
      .keep_all = 6'144,
      .compute_factor = 1.25};
  CHECK(line_of(forecast.use) ==
        "kept 1.00 KiB (1 activation), peak 3.00 KiB, 3 forward passes of 2 layers");
  CHECK(line_of(forecast) == forecast.use.summary() + ", 50.0 % of 6.00 KiB, compute factor 1.250");
}

}  // namespace
}  // namespace palimpsest::accounts_test
