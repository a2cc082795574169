#include "benchmarks/networks.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

namespace palimpsest::benchmarks {
namespace {

/// Records layers on a tape.
class Layers {
 public:
  explicit Layers(Tape& tape) : tape_(tape) {}

  Var images(std::int64_t count, std::int64_t size) const {
    return tape_.constant(Tensor::zeros({count, 3, size, size}));
  }
  Var convolution(const Var& x, std::int64_t channels, std::int64_t size,
                  std::int64_t stride = 1) const {
    const Var weight = parameter({channels, x.shape()[1], size, size});
    return conv2d(x, weight, {}, {.stride = stride, .padding = size / 2});
  }
  Var normalized(const Var& x) const {
    const Shape channels{x.shape()[1]};
    return batch_norm(x, parameter(channels), parameter(channels)).y;
  }
  /// Convolution, normalisation and relu.
  Var unit(const Var& x, std::int64_t channels, std::int64_t size, std::int64_t stride = 1) const {
    return relu(normalized(convolution(x, channels, size, stride)));
  }
  Var linear(const Var& x, std::int64_t features) const {
    return palimpsest::linear(x, parameter({x.shape()[1], features}), parameter({features}));
  }
  /// The classification loss of x (n, features).
  Var loss(const Var& x) const {
    const Tensor labels({x.shape()[0]}, DType::i32);
    return cross_entropy(linear(x, 100), tape_.constant(labels));
  }

 private:
  Var parameter(const Shape& shape) const { return tape_.parameter(Tensor::zeros(shape)); }

  Tape& tape_;
};

Var bottleneck(const Layers& layers, const Var& x, std::int64_t width, std::int64_t stride) {
  const std::int64_t channels = 4 * width;
  const Var narrow = layers.unit(layers.unit(x, width, 1), width, 3, stride);
  const Var change = layers.normalized(layers.convolution(narrow, channels, 1));
  const bool same = stride == 1 && x.shape()[1] == channels;
  return relu(change + (same ? x : layers.normalized(layers.convolution(x, channels, 1, stride))));
}

Var vgg(Tape& tape) {
  const Layers layers(tape);
  Var x = layers.images(32, 192);
  std::int64_t channels = 16;
  for (const int convolutions : {2, 2, 3, 3, 3}) {
    for (int i = 0; i < convolutions; ++i) {
      x = relu(layers.convolution(x, channels, 3));
    }
    x = max_pool(x, 2);
    channels = std::min<std::int64_t>(2 * channels, 128);
  }
  x = reshape(x, {x.shape()[0], -1});
  for (int i = 0; i < 2; ++i) x = dropout(relu(layers.linear(x, 256)), 0.5);
  return layers.loss(x);
}

Var resnet50(Tape& tape) {
  const Layers layers(tape);
  Var x = layers.unit(layers.images(32, 192), 16, 7, 2);
  x = max_pool(x, 3, {.stride = 2, .padding = 1});
  std::int64_t width = 16;
  for (const int blocks : {3, 4, 6, 3}) {
    for (int i = 0; i < blocks; ++i) {
      x = bottleneck(layers, x, width, i == 0 && width > 16 ? 2 : 1);
    }
    width *= 2;
  }
  return layers.loss(reshape(global_average_pool(x), {x.shape()[0], -1}));
}

Var unet(Tape& tape) {
  const Layers layers(tape);
  const auto twice = [&](const Var& x, std::int64_t channels) {
    return layers.unit(layers.unit(x, channels, 3), channels, 3);
  };
  constexpr int levels = 4;
  Var x = layers.images(8, 256);
  std::vector<Var> across;
  for (int level = 0; level < levels; ++level) {
    across.push_back(twice(x, 16 << level));
    x = max_pool(across.back(), 2);
  }
  x = twice(x, 16 << levels);
  for (int level = levels; level-- > 0;) {
    const Var larger = layers.convolution(upsample(x, 2), 16 << level, 3);
    x = twice(concat({across[static_cast<std::size_t>(level)], larger}, 1), 16 << level);
  }
  return mean(square(layers.convolution(x, 1, 1)));
}

Var densenet(Tape& tape) {
  const Layers layers(tape);
  constexpr std::int64_t growth = 12;
  Var x = layers.unit(layers.images(32, 128), 2 * growth, 7, 2);
  std::optional<std::int64_t> halved;
  for (const int depth : {6, 12, 24, 16}) {
    if (halved) x = average_pool(layers.unit(x, *halved, 1), 2);
    for (int i = 0; i < depth; ++i) {
      const Var narrow = layers.convolution(relu(layers.normalized(x)), 4 * growth, 1);
      x = concat({x, layers.convolution(relu(layers.normalized(narrow)), growth, 3)}, 1);
    }
    halved = x.shape()[1] / 2;
  }
  return layers.loss(reshape(global_average_pool(x), {x.shape()[0], -1}));
}

}  // namespace

Graph gradient_graph(const std::function<Var(Tape&)>& record_loss) {
  Tape tape;
  const Var loss = record_loss(tape);
  const NodeId backward_begins = tape.node_count();
  std::vector<Var> parameters;
  for (NodeId node = 0; node < backward_begins; ++node) {
    if (tape.is_parameter(node)) parameters.push_back(tape.var(tape.first_output(node)));
  }
  std::vector<ValueId> targets{loss.id()};
  for (const Var& gradient : gradient(loss, parameters)) targets.push_back(gradient.id());
  return graph_of(tape, targets, 1, backward_begins);
}

std::vector<Network> networks() {
  const auto gpt = [](int blocks) {
    return gradient_graph(transformer({.blocks = blocks, .width = 64}).record_loss);
  };
  return {{"vgg", [] { return gradient_graph(vgg); }},
          {"resnet50", [] { return gradient_graph(resnet50); }},
          {"unet", [] { return gradient_graph(unet); }},
          {"densenet", [] { return gradient_graph(densenet); }},
          {"gpt12", [=] { return gpt(12); }},
          {"gpt48", [=] { return gpt(48); }},
          {"rnn500", [] {
             return gradient_graph(rnn({.steps = 500, .width = 64, .batch = 256}).record_loss);
           }}};
}

std::vector<Network> published_networks() {
  std::vector<Network> result;
  const char* const folder = std::getenv("PALIMPSEST_GRAPHS");
  if (folder == nullptr || !std::filesystem::is_directory(folder)) return result;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::filesystem::path& path = entry.path();
    if (path.extension() != ".json") continue;
    result.push_back({path.stem().string(), [path] { return read_graph(path.string()); }});
  }
  std::sort(result.begin(), result.end(),
            [](const Network& a, const Network& b) { return a.name < b.name; });
  return result;
}

}  // namespace palimpsest::benchmarks
