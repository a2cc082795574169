#include <random>

#include "palimpsest.h"
#include "strategy/compile/lowered_forms.h"
#include "tests/catch.h"
#include "tests/fused_peaks.h"

namespace palimpsest::group_splitting_test {
namespace {

/// Operations over large squares: elementwise functions that share inputs, and what is between
/// them.
class RandomSquares {
 public:
  RandomSquares(Tape& tape, std::uint32_t seed) : random_(seed) {
    constexpr std::int64_t side = 256;
    const std::size_t count = 1 + below(3);
    for (std::size_t i = 0; i < count; ++i) {
      parameters_.push_back(tape.parameter(Tensor::full({side, side}, 0.5)));
    }
    values_ = parameters_;
    const std::size_t steps = 5 + below(40);
    for (std::size_t i = 0; i < steps; ++i) values_.push_back(step());
    loss_ = mean(square(values_.back()));
    if (below(2) == 1) loss_ = loss_ + mean(values_[below(values_.size())]);
  }

  /// The loss and its gradients.
  std::vector<ValueId> targets() const {
    std::vector<ValueId> targets{loss_.id()};
    for (const Var& each : gradient(loss_, parameters_)) targets.push_back(each.id());
    return targets;
  }

 private:
  std::size_t below(std::size_t end) { return random_() % end; }

  /// One of the last values, or any.
  Var any() {
    const std::size_t range =
        below(3) == 0 ? values_.size() : std::min<std::size_t>(3, values_.size());
    return values_[values_.size() - 1 - below(range)];
  }

  Var step() {
    const Var a = any();
    const Var b = any();
    switch (below(11)) {
      case 0:
        return matmul(a, b);
      case 1:
        return tanh(a);
      case 2:
        return a + b;
      case 3:
        return a * b;
      case 4:
        return checkpoint([b](const Var& h) { return tanh(matmul(tanh(h), b)); }, a);
      case 5:
        return a * sum(b, {0}, true);
      case 6:
        return softmax(a, -1);
      case 7:
        return transpose(a);
      case 8: {
        const Var rows = slice(a, 0, {0, 2});
        return b * mean(square(rows) + rows);
      }
      case 9:
        return concat({slice(a, 0, {0, 100}), slice(b, 0, {100, 256})}, 0);
      default:
        return roll(a, 1, 0);
    }
  }

  std::mt19937 random_;
  std::vector<Var> parameters_;
  std::vector<Var> values_;
  Var loss_;
};

TEST_CASE("fusion takes no more memory than its scratch beyond that of single nodes",
          "[fusion][memory]") {
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    Tape tape;
    const RandomSquares program(tape, seed);
    const NodeId backward_begins = tape.node_count();
    const std::vector<ValueId> targets = program.targets();
    const ProgramSpec spec{targets, backward_begins, {}, 1};
    LoweredForms forms(tape, spec);
    for (const bool simplify : {false, true}) {
      const Lowered& fused = *forms.get(tape, spec, {true, simplify});
      const Bytes single = keep_all_peak(*forms.get(tape, spec, {false, simplify}));
      CHECK(keep_all_peak(fused) <= single + scratch_of(fused));
    }
  }
}

Var blocks(Tape& tape, const CheckpointOptions& options = {}) {
  const Var weight = tape.parameter(Tensor::normal({128, 128}, 1, 0, 0.05));
  Var x = tape.constant(Tensor::normal({64, 128}, 2));
  const auto block = [weight](const Var& h) {
    return tanh(matmul(tanh(matmul(h, weight)), weight));
  };
  for (int i = 0; i < 32; ++i) x = checkpoint(options, block, x);
  return mean(x * x);
}

Bytes peak_of_blocks(bool fuse, const CheckpointOptions& options = {}) {
  Tape tape;
  return backward(blocks(tape, options), {.threads = 1, .fuse = fuse}).report().measured_peak;
}

TEST_CASE("gradients of a shared parameter are added as they arrive", "[fusion][memory]") {
  const Bytes fused = peak_of_blocks(true);
  CHECK(fused <= peak_of_blocks(false));
  // The states between blocks, and a few arrays in the shape of the weight instead of 32.
  CHECK(fused <= 33 * 64 * 128 * 4 + 8 * 128 * 128 * 4);
}

TEST_CASE("a codec saves the memory of states in fused programs", "[fusion][memory]") {
  const auto exact = static_cast<double>(peak_of_blocks(true));
  CHECK(peak_of_blocks(true, {.codec = Codec::half}) <= 0.65 * exact);
}

TEST_CASE("mixed precision saves memory in fused unrolled programs", "[fusion][memory]") {
  const auto peak = [](PrecisionKind kind, bool fuse) {
    const auto unrolled = [](Tape& tape) {
      const Var weight = tape.parameter(Tensor::normal({128, 128}, 1, 0, 0.05));
      Var x = tape.constant(Tensor::normal({128, 128}, 2));
      for (int i = 0; i < 32; ++i) x = tanh(matmul(x, weight));
      return mean(x * x);
    };
    const Program program =
        Program::gradients(unrolled, Precision{kind}, {.threads = 1, .fuse = fuse});
    return program.plan().predicted_peak();
  };
  const Bytes mixed = peak(PrecisionKind::mixed, true);
  CHECK(mixed <= peak(PrecisionKind::mixed, false));
  CHECK(mixed <= 0.75 * static_cast<double>(peak(PrecisionKind::single, true)));
}

}  // namespace
}  // namespace palimpsest::group_splitting_test
