// Runs a transformer layer by layer and keeps only some of the activations. Compares the forecast
// savings and costs with the measured ones. The gradients have the same bits in all cases.
#include <palimpsest.h>

#include <cmath>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

using namespace palimpsest;

namespace {

constexpr int layers = 8;
constexpr std::int64_t width = 64;

using Weights = std::vector<std::vector<Tensor>>;

Weights random_weights(const std::vector<Shape>& shapes, std::uint64_t seed) {
  Weights weights(layers);
  for (auto& layer : weights) {
    for (const Shape& shape : shapes) layer.push_back(Tensor::normal(shape, ++seed, 0, 0.1));
  }
  return weights;
}

LayerModel transformer() {
  const Shape square{width, width};
  LayerModel model{
      .attention = {.parameters = random_weights({square, square, square, square}, 100),
                    .forward =
                        [](const Var& x, std::span<const Var> w, int) {
                          const AttentionParameters projections{
                              .query = w[0], .key = w[1], .value = w[2], .output = w[3]};
                          return x + multi_head_attention(x, projections, 4, {.causal = true});
                        }},
      .feed_forward = {.parameters = random_weights({{width, 4 * width}, {4 * width, width}}, 200),
                       .forward = [](const Var& x, std::span<const Var> w, int) {
                         return x + dropout(matmul(gelu(matmul(x, w[0])), w[1]), 0.1);
                       }}};
  return model;
}

Var loss_of(const Var& output) { return mean(output * output); }

}  // namespace

int main(int count, char** arguments) {
  const LayerModel model = transformer();
  const Tensor input = Tensor::normal({4, 64, width}, /*seed=*/1);

  // Keeps the input of every second layer and recomputes the layers from it.
  LayerCheckpointer every_second(model, {.mode = LayerCheckpointing::Mode::every, .interval = 2});
  const Tensor output = every_second.forward(input, /*seed=*/1);
  const LayerGradients gradients = every_second.backward(loss_of);
  const Tensor query = gradients.parameters[every_second.parameter(3, 0, Sublayer::attention)];
  std::cout << "layer 3: gradient of the query's weights " << query.at(0) << " ...\n"
            << "         input " << every_second.activation(3).at(0) << " ...\n\n";

  const std::string file = std::string(count > 1 ? arguments[1] : ".") + "/layers.json";
  write_layer_checkpointing({.mode = LayerCheckpointing::Mode::dynamic,
                             .memory_fraction = 0.4,
                             .sublayers = {.attention = true, .feed_forward = true}},
                            file);
  const std::vector<std::pair<const char*, LayerCheckpointing>> choices{
      {"none", {}},
      {"every 2", {.mode = LayerCheckpointing::Mode::every, .interval = 2}},
      {"every 1, half",
       {.mode = LayerCheckpointing::Mode::every, .interval = 1, .codec = Codec::half}},
      {"2, 5", {.mode = LayerCheckpointing::Mode::listed, .layers = {2, 5}}},
      {"40 %", read_layer_checkpointing(file)},
  };
  std::cout << "kept            kept          at most       saved   compute\n";
  bool as_forecast = true;
  bool same = true;
  for (const auto& [name, choice] : choices) {
    LayerCheckpointer checkpointer(model, choice);
    const LayerForecast forecast = checkpointer.forecast(input.type());
    checkpointer.forward(input, /*seed=*/1);
    const LayerGradients found = checkpointer.backward(loss_of);
    as_forecast = as_forecast && checkpointer.use() == forecast.use;
    for (std::size_t i = 0; choice.codec == Codec::exact && i < found.parameters.entries().size();
         ++i) {
      same = same && same_bits(found.parameters.entries()[i].gradient,
                               gradients.parameters.entries()[i].gradient);
    }
    std::cout << std::left << std::setw(16) << name << std::setw(14)
              << format_bytes(forecast.use.kept) << std::setw(14) << format_bytes(forecast.use.peak)
              << std::setw(8) << std::to_string(std::lround(100 * forecast.saved_fraction())) + " %"
              << std::fixed << std::setprecision(2) << forecast.compute_factor << '\n';
  }
  std::cout << "\nAs forecast: " << (as_forecast ? "yes" : "no")
            << ". The same bits, but at half width: " << (same ? "yes" : "no") << '\n';
  return as_forecast && same ? 0 : 1;
}
