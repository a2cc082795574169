// The same training loop in five precisions: the memory each one takes and the loss it reaches.
#include <palimpsest.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

using namespace palimpsest;

namespace {

constexpr int steps = 60;
constexpr std::int64_t batch = 512, inputs = 3, width = 128, layers = 5;

/// A perceptron that learns whether a point lies outside of a sphere. The model does not mention
/// precision.
class Model {
 public:
  Model() {
    for (std::int64_t i = 0; i <= layers; ++i) {
      const std::int64_t from = i == 0 ? inputs : width;
      const std::int64_t to = i == layers ? 2 : width;
      const double deviation = std::sqrt(2.0 / static_cast<double>(from));
      weights_.push_back(Tensor::normal({from, to}, weights_.size(), 0, deviation));
      weights_.push_back(Tensor::zeros({to}));
    }
  }

  Var loss(Tape& tape, int step) const {
    const Tensor points = Tensor::normal({batch, inputs}, 100 + static_cast<std::uint64_t>(step));
    const Tensor outside({batch}, DType::i64);
    for (std::int64_t i = 0; i < batch; ++i) {
      double square = 0;
      for (std::int64_t j = 0; j < inputs; ++j) square += std::pow(points.at(i * inputs + j), 2);
      outside.data<std::int64_t>()[static_cast<std::size_t>(i)] = square > inputs;
    }
    Var x = tape.constant(points);
    for (std::size_t i = 0; i < weights_.size(); i += 2) {
      const Var weight = tape.parameter(weights_[i]);
      x = linear(x, weight, tape.parameter(weights_[i + 1]));
      if (i + 2 < weights_.size()) x = layer_norm(gelu(x));
    }
    return cross_entropy(x, tape.constant(outside));
  }

 private:
  std::vector<Tensor> weights_;
};

struct Trained {
  double loss = 0;  ///< mean over the last ten steps
  Bytes peak = 0;
};

Trained train(const Precision& precision) {
  const Model model;
  Tape tape(precise(precision));
  const auto optimizer = adam({.learning_rate = 1e-3});
  LossScaler scaler;  // needed where gradients pass through f16
  Trained trained;
  for (int step = 0; step < steps; ++step) {
    tape.clear();
    const Gradients gradients = backward(scaler.scale(model.loss(tape, step)));
    if (scaler.unscale(gradients)) optimizer->step(gradients);
    if (step >= steps - 10) trained.loss += scaler.loss() / 10;
    trained.peak = gradients.report().measured_peak;
  }
  return trained;
}

}  // namespace

int main() {
  const std::vector<Precision> precisions{{PrecisionKind::full},
                                          {PrecisionKind::single},
                                          {PrecisionKind::mixed, DType::bf16},
                                          {PrecisionKind::mixed, DType::f16},
                                          {PrecisionKind::half, DType::bf16}};
  double single = 0;
  for (const Precision& precision : precisions) {
    const Trained trained = train(precision);
    std::string name(name_of(precision.kind));
    if (precision.narrow() == precision.half) name.append(" ").append(name_of(precision.half));
    std::printf("%-10s  loss %.4f  peak %6.2f MiB\n", name.c_str(), trained.loss,
                static_cast<double>(trained.peak) / 1048576);
    if (precision.kind == PrecisionKind::single) single = trained.loss;
    if (precision.kind == PrecisionKind::mixed && std::abs(trained.loss - single) > 0.05) return 1;
  }
}
