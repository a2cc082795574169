#include <cmath>
#include <functional>

#include "tests/catch.h"
#include "tests/strategy/compile/fusion/results.h"
#include "tests/strategy/execution/precision/small_transformer.h"

namespace palimpsest::training_test {
namespace {

/// A perceptron with batch normalisation that separates two classes of points, one inside the
/// other.
class Perceptron {
 public:
  Perceptron() {
    std::int64_t inputs = 2;
    for (const std::int64_t outputs : {32, 32, 2}) {
      const double deviation = std::sqrt(2.0 / static_cast<double>(inputs));
      weights_.push_back(Tensor::normal({inputs, outputs}, weights_.size(), 0, deviation));
      weights_.push_back(Tensor::zeros({outputs}));
      inputs = outputs;
    }
  }

  Var loss(Tape& tape, int step) const {
    const Tensor points = Tensor::normal({128, 2}, 100 + static_cast<std::uint64_t>(step));
    const Tensor classes({128}, DType::i64);
    for (int i = 0; i < 128; ++i) {
      classes.data<std::int64_t>()[static_cast<std::size_t>(i)] =
          std::hypot(points.at(2 * i), points.at(2 * i + 1)) > 1.2;
    }
    Var x = tape.constant(points);
    for (std::size_t i = 0; i < weights_.size(); i += 2) {
      const Var weight = tape.parameter(weights_[i]);
      x = linear(x, weight, tape.parameter(weights_[i + 1]));
      if (i + 2 < weights_.size()) x = relu(batch_norm(x).y);
    }
    return cross_entropy(x, tape.constant(classes));
  }

 private:
  std::vector<Tensor> weights_;
};

/// The mean loss of the last tenth of the steps.
template <class Model>
double train(Model model, const Precision& precision, int steps, LossScaler* scaler = nullptr) {
  Tape tape(precise(precision));
  const auto optimizer = adam({.learning_rate = 3e-3});
  double last = 0;
  for (int step = 0; step < steps; ++step) {
    tape.clear();
    const Var loss = model.loss(tape, step);
    const Gradients gradients = backward(scaler != nullptr ? scaler->scale(loss) : loss);
    CHECK(gradients.report().measured_peak <= gradients.report().predicted_peak);
    const bool finite = scaler == nullptr || scaler->unscale(gradients);
    const double value = scaler != nullptr ? scaler->loss() : gradients.loss().item();
    if (step >= steps - steps / 10) last += value / (steps / 10);
    if (finite) optimizer->step(gradients);
  }
  return last;
}

TEST_CASE("models learn as well in mixed precision as in single precision") {
  const auto check = [](const char* name, auto make, int steps, double learned) {
    const double single = train(make(), {PrecisionKind::single}, steps);
    const double full = train(make(), {PrecisionKind::full}, steps);
    const double bf16 = train(make(), {.half = DType::bf16}, steps);
    LossScaler scaler;
    const double f16 = train(make(), {.half = DType::f16}, steps, &scaler);
    INFO(name << ": full " << full << ", single " << single << ", bf16 " << bf16 << ", f16 "
              << f16);
    CHECK(single < learned);
    CHECK(std::abs(full - single) < 0.02);
    CHECK(std::abs(bf16 - single) < 0.03);
    CHECK(std::abs(f16 - single) < 0.03);
  };
  check("perceptron", [] { return Perceptron(); }, 200, 0.3);
  check("transformer", [] { return SmallTransformer({}); }, 200, 1.0);
}

TEST_CASE("a step that overflows f16 is left out, and the scale halves") {
  const SmallTransformer model({});
  // Adjoints in f16 hold less than 2¹⁶, so with this scale the first ones overflow.
  LossScaler scaler({.scale = 0x1p24});
  Tape tape(precise({.half = DType::f16}));
  const auto optimizer = sgd({.learning_rate = 0.1});
  std::vector<Tensor> before;
  for (const Tensor& weight : model.weights()) before.push_back(weight.clone());
  int step = 0;
  for (; scaler.skipped() == step; ++step) {
    REQUIRE(step < 30);
    CHECK(equal(before, model.weights()));
    const double scale = scaler.scale();
    tape.clear();
    const Gradients gradients = backward(scaler.scale(model.loss(tape, 1)));
    const bool finite = scaler.unscale(gradients);
    CHECK(scaler.scale() == (finite ? scale : scale / 2));
    if (finite) optimizer->step(gradients);
  }
  CHECK(step > 1);
  CHECK(optimizer->steps() == 1);
  CHECK_FALSE(equal(before, model.weights()));
}

TEST_CASE("training in a precision has the same bits at any number of threads and any budget") {
  for (const Precision& precision :
       {Precision{}, Precision{.half = DType::f16}, Precision{PrecisionKind::half}}) {
    const auto train_within = [&](const RunOptions& options) {
      const SmallTransformer model({});
      Tape tape(precise(precision));
      const auto optimizer = adam({.learning_rate = 1e-3});
      for (int step = 0; step < 3; ++step) {
        tape.clear();
        const Gradients gradients = backward(model.loss(tape, step), options);
        CHECK(gradients.report().measured_peak <= options.memory_budget);
        optimizer->step(gradients);
      }
      return model.weights();
    };
    const std::vector<Tensor> exact = train_within({.threads = 1});
    for (const int threads : {2, 3}) CHECK(equal(exact, train_within({.threads = threads})));
    Tape tape(precise(precision));
    const Bytes peak = plan_backward(SmallTransformer({}).loss(tape, 0)).predicted_peak();
    for (const Bytes budget : {peak * 3 / 4, peak * 2 / 3}) {
      CHECK(equal(exact, train_within({.memory_budget = budget, .threads = 2})));
    }
  }
}

}  // namespace
}  // namespace palimpsest::training_test
