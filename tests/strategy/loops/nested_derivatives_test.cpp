// Derivatives of any order through loops in loops, whose steps are recorded once or one by one.
#include <cmath>
#include <functional>

#include "palimpsest.h"
#include "tests/catch.h"

namespace palimpsest::nested_derivatives_test {
namespace {

using Body = std::function<Var(const Var&)>;

/// Which loops record their steps one by one, from the outermost to the innermost.
struct Nest {
  std::vector<bool> differs;
  bool is_unrolled = false;
};

Var repeated(const Var& start, bool differs, bool is_unrolled, const Body& body) {
  constexpr std::int64_t steps = 2;
  if (!is_unrolled) {
    return scan(start, steps,
                [=](const Var& x, const StepNumber& n) { return differs && n < 0 ? x : body(x); });
  }
  Var x = start;
  for (std::int64_t n = 0; n < steps; ++n) x = body(x);
  return x;
}

/// Each loop captures a value that the loop around it records.
Var nested(const Nest& nest, std::size_t level, const Var& x, const Var& weight) {
  return repeated(x, nest.differs[level], nest.is_unrolled, [=](const Var& u) {
    if (level + 1 == nest.differs.size()) return sin(u * weight + 0.1);
    const Var inner = tanh(weight * 1.0 + 0.1 * u);
    return nested(nest, level + 1, u, inner) + 0.1 * u;
  });
}

/// A derivative of the given order, in one of several ways.
double derivative(const Nest& nest, int order, bool has_directions, bool is_eager) {
  Tape tape(is_eager ? eager() : nullptr);
  const Var x = tape.parameter(Tensor::scalar(0.6, DType::f64));
  Var y = nested(nest, 0, x, 0.7 * x);
  for (; has_directions && order >= 2; order -= 2) y = tanh(hvp(y, x, x));
  for (; order > 0; --order) y = gradient(y, x);
  return y.item();
}

TEST_CASE("derivatives through loops in loops are those of the unrolled program") {
  std::vector<std::vector<bool>> nests;
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) {
      nests.push_back({a, b});
      for (const bool c : {false, true}) nests.push_back({a, b, c});
    }
  }
  for (const std::vector<bool>& differs : nests) {
    const int orders = differs.size() == 2 ? 4 : 3;
    for (int order = 1; order <= orders; ++order) {
      for (const bool has_directions : {false, true}) {
        const bool is_eager = order % 2 == 0;
        CAPTURE(differs, order, has_directions);
        const double expected = derivative({differs, true}, order, has_directions, is_eager);
        const double found = derivative({differs}, order, has_directions, is_eager);
        CHECK(std::abs(found - expected) <= 1e-11 * (1 + std::abs(expected)));
      }
    }
  }
}

}  // namespace
}  // namespace palimpsest::nested_derivatives_test
