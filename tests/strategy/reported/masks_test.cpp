#include <string>
#include <vector>

#include "palimpsest.h"
#include "tests/catch.h"
#include "tests/strategy/reported/budgets.h"

// Reports of other libraries in which a recomputed random mask differs from the first one
// (docs/reported-elsewhere.md).

namespace palimpsest::reported_masks_test {
namespace {

constexpr std::int64_t width = 24;
constexpr int layers = 6;

struct Network {
  std::vector<Tensor> weights;
  Tensor input = Tensor::normal({16, width}, 50, 0, 1, DType::f64);

  Network() {
    for (int k = 0; k < layers; ++k)
      weights.push_back(Tensor::normal({width, width}, 10 + k, 0, 0.3, DType::f64));
  }
};

/// The gradients of a network in which `drop(x, layer)` follows each layer, and what it returned in
/// each layer.
Gradients gradients_of(const Network& network, const std::function<Var(const Var&, int)>& drop,
                       Bytes budget = unlimited) {
  Tape tape;
  Var x = tape.constant(network.input);
  std::vector<Var> dropped;
  for (int k = 0; k < layers; ++k) {
    x = drop(tanh(matmul(x, tape.parameter(network.weights[static_cast<std::size_t>(k)]))), k);
    dropped.push_back(x);
  }
  return backward(mean(square(x)), Outputs(dropped), {.memory_budget = budget, .threads = 1});
}

bool same_gradients(const Gradients& a, const Gradients& b) {
  for (std::size_t k = 0; k < a.entries().size(); ++k) {
    if (!same_bits(a.entries()[k].gradient, b.entries()[k].gradient)) return false;
  }
  return a.entries().size() == b.entries().size();
}

TEST_CASE(
    "pytorch 190717: at every budget, dropout's gradient is that of the mask which the outputs "
    "show") {
  const Network network;
  const auto drop = [](const Var& x, int) { return dropout(x, 0.5); };
  const Gradients whole = gradients_of(network, drop);
  // Dropping half of the elements doubles the others, which changes no bits of what the mask
  // leaves.
  const Gradients by_mask = gradients_of(network, [&](const Var& x, int k) {
    const Tensor& shown = whole.outputs()[static_cast<std::size_t>(k)];
    return 2.0 * x * x.tape().constant(not_equal(shown, 0.0).to(DType::f64));
  });
  CHECK(same_gradients(by_mask, whole));

  std::uint32_t recomputed = 0;
  for (const Bytes budget :
       feasible_budgets([&](Bytes bytes) { return gradients_of(network, drop, bytes); }, 12)) {
    CAPTURE(budget);
    const Gradients within = gradients_of(network, drop, budget);
    CHECK(same_gradients(within, whole));
    recomputed += within.report().recomputed;
  }
  CHECK(recomputed > 0);
}

TEST_CASE(
    "pytorch 198333: neighbouring channels have masks of their own, and recomputing makes the "
    "first ones") {
  const std::int64_t channels = GENERATE(4, 7, 8);
  const DType dtype = GENERATE(DType::f32, DType::f64, DType::bf16);
  CAPTURE(channels, name_of(dtype));
  const std::int64_t places = 4096;
  const auto run = [&](bool checkpointed) {
    Tape tape;
    const Var x = tape.parameter(Tensor::ones({channels, places}, dtype), "x");
    const auto block = [](const Var& v) { return dropout(v, 0.5); };
    const Var y = checkpointed ? checkpoint(block, x) : block(x);
    return backward(sum(y), {y}, {.threads = 1});
  };
  for (const bool checkpointed : {false, true}) {
    const Gradients gradients = run(checkpointed);
    const Tensor& shown = gradients.outputs()[0];
    // The derivative of the sum by x is the mask that the backward part uses.
    CHECK(same_bits(gradients.entries()[0].gradient, shown));
    CHECK(same_bits(shown, run(false).outputs()[0]));
    for (std::int64_t c = 0; c + 1 < channels; ++c) {
      int equal = 0;
      for (std::int64_t i = 0; i < places; ++i)
        equal += shown.at(c * places + i) == shown.at((c + 1) * places + i);
      CHECK(std::abs(equal - places / 2) < 5 * 32);  // five standard deviations
    }
  }
}

TEST_CASE(
    "OLMo-core 828: 100 steps of training with dropout inside checkpoint end in the weights of "
    "those without") {
  const auto train = [](bool checkpointed) {
    Network network;
    const auto optimizer = adam({.learning_rate = 1e-2});
    Tape tape;
    for (int step = 0; step < 100; ++step) {
      tape.clear();
      Var x = tape.constant(network.input);
      for (const Tensor& weight : network.weights) {
        const Var w = tape.parameter(weight);
        const auto layer = [w](const Var& h) { return dropout(tanh(matmul(h, w)), 0.3); };
        x = checkpointed ? checkpoint(layer, x) : layer(x);
      }
      optimizer->step(backward(mean(square(x - 0.5)), {.threads = 1}));
    }
    return network.weights;
  };
  const std::vector<Tensor> with = train(true), without = train(false);
  for (std::size_t k = 0; k < with.size(); ++k) CHECK(same_bits(with[k], without[k]));
}

}  // namespace
}  // namespace palimpsest::reported_masks_test
