#include <benchmark/benchmark.h>

#include <cmath>
#include <vector>

#include "benchmarks/strategy/parts.h"
#include "benchmarks/turns.h"
#include "palimpsest.h"

namespace palimpsest::benchmarks {
namespace {

using benchmark::State;

constexpr int layers = 8;
constexpr std::int64_t width = 128;

std::vector<std::vector<Tensor>> weights(const std::vector<Shape>& shapes, std::uint64_t seed) {
  std::vector<std::vector<Tensor>> all(layers);
  for (auto& layer : all) {
    for (const Shape& shape : shapes) layer.push_back(Tensor::normal(shape, ++seed, 0, 0.05));
  }
  return all;
}

/// A transformer on 8 passages of 128 tokens.
LayerModel model() {
  const Shape square{width, width};
  return {.attention = {.parameters = weights({square, square, square, square}, 100),
                        .forward =
                            [](const Var& x, std::span<const Var> w, int) {
                              const AttentionParameters projections{
                                  .query = w[0], .key = w[1], .value = w[2], .output = w[3]};
                              return x + multi_head_attention(x, projections, 4, {.causal = true});
                            }},
          .feed_forward = {.parameters = weights({{width, 4 * width}, {4 * width, width}}, 200),
                           .forward = [](const Var& x, std::span<const Var> w, int) {
                             return x + matmul(gelu(matmul(x, w[0])), w[1]);
                           }}};
}

struct Row {
  const char* name;
  LayerCheckpointing checkpointing;
  double most_peak;  ///< as a ratio to keeping every tape
  double most_time;
};

using Mode = LayerCheckpointing::Mode;
const Row rows[] = {
    {"every-1", {.mode = Mode::every, .interval = 1}, 0.2, 1.4},
    {"every-2", {.mode = Mode::every, .interval = 2}, 0.3, 1.4},
    {"half", {.mode = Mode::every, .interval = 1, .codec = Codec::half}, 0.18, 1.4},
    {"dynamic", {.mode = Mode::dynamic, .memory_fraction = 0.4}, 0.4, 1.4},
};

void step(LayerCheckpointer& checkpointer, const Tensor& input) {
  checkpointer.forward(input);
  checkpointer.backward([](const Var& output) { return mean(output * output); });
}

void in_layers(State& state, const Row& row) {
  const Tensor input = Tensor::normal({8, 128, width}, 1);
  LayerCheckpointer none(model(), {}, {.threads = 1});
  LayerCheckpointer some(model(), row.checkpointing, {.threads = 1});
  const LayerForecast forecast = some.forecast(input.type());
  Turns turns;
  turns.add_once("none", [&] { step(none, input); });
  turns.add_once("some", [&] { step(some, input); });
  for (auto _ : state) {
    turns.take(4);
    state.SetIterationTime(turns.seconds("some"));
  }
  const auto peak = static_cast<double>(some.use().peak);
  state.counters["of_all_time"] = turns.ratio("some", "none");
  state.counters["of_all_peak"] = peak / static_cast<double>(none.use().peak);
  state.counters["peak_bytes"] = peak;
  state.counters["as_forecast"] = some.use() == forecast.use;
}

}  // namespace

void register_layers() {
  for (const Row& row : rows) {
    benchmark::RegisterBenchmark(("layers/" + std::string(row.name)).c_str(),
                                 [&row](State& state) { in_layers(state, row); })
        ->Unit(benchmark::kMillisecond)
        ->Iterations(1)
        ->UseManualTime();
  }
}

void claim_layers(const Results& results, Claims& claims) {
  for (const Row& row : rows) {
    const std::string name = "layers/" + std::string(row.name);
    claims.at_least(name + ": what is held and computed is as forecast", 1,
                    results.counter(name, "as_forecast"), "");
    claims.at_most(name + ": what is held at a time", row.most_peak,
                   results.counter(name, "of_all_peak"), "of that of keeping every tape");
    claims.at_most(name + ": a step", row.most_time, results.counter(name, "of_all_time"),
                   "of the time of keeping every tape");
  }
}

}  // namespace palimpsest::benchmarks
