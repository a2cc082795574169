#include "autodiff/operations/squared_roots.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "autodiff/custom.h"
#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/linalg.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"
#include "tests/catch.h"

namespace palimpsest::squared_roots_test {
namespace {

using Catch::Matchers::WithinAbs;
using Function = std::function<Var(const Var&)>;

/// The ways to write a square.
std::vector<Var> squares(const Function& root, const Var& x) {
  const Var y = root(x);
  return {square(y), pow(y, 2), y * y, root(x) * root(x)};
}

TEST_CASE("squares of roots have a second derivative where the root has none") {
  struct Row {
    const char* name;
    Function root;
    double diagonal, beside;  // of the Hessian
  };
  const Row rows[] = {
      {"norm", [](const Var& x) { return norm(x); }, 2, 0},
      {"norm, axis kept", [](const Var& x) { return norm(x, 2, {0}, true); }, 2, 0},
      {"matrix_norm", [](const Var& x) { return matrix_norm(reshape(x, {1, 3})); }, 2, 0},
      {"hypot", [](const Var& x) { return hypot(x, x * 2.0); }, 10, 0},
      {"abs", [](const Var& x) { return abs(x); }, 2, 0},
      {"standard_deviation", [](const Var& x) { return standard_deviation(x); }, 2.0 / 3, -1.0 / 3},
      {"standard_deviation of all, axis kept",
       [](const Var& x) { return standard_deviation(x, {0}, 0, true); }, 4.0 / 9, -2.0 / 9},
  };
  for (const auto& [name, root, diagonal, beside] : rows) {
    CAPTURE(name);
    for (const DType dtype : {DType::f64, DType::f32}) {
      Tape tape;
      const Var x = tape.parameter(Tensor::zeros({3}, dtype));
      for (const Var& y : squares(root, x)) {
        const Tensor h = hessian(sum(y), x);
        for (std::int64_t i = 0; i < 9; ++i) {
          CHECK_THAT(h.at(i), WithinAbs(i % 4 == 0 ? diagonal : beside, 1e-6));
        }
      }
    }
  }
}

TEST_CASE("squares of roots have the value, type and shape of the square") {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    Tape tape;
    const Tensor given = Tensor::normal({3, 4}, 5, 0, 1, DType::f64);
    const Var x = tape.parameter(given.to(dtype));
    const Var other = tape.parameter(Tensor::normal({3, 4}, 6, 0, 1, dtype));
    const double tolerance = dtype == DType::f64 ? 1e-14 : dtype == DType::f32 ? 1e-6 : 5e-2;
    const std::vector<Var> roots{norm(x, 2, {1}),
                                 norm(x, 2, {0}, true),
                                 hypot(x, other),
                                 norm(x),
                                 abs(x),
                                 standard_deviation(x, {1}),
                                 standard_deviation(x, {0}, 0, true)};
    for (const Var& root : roots) {
      const Var y = square(root);
      CHECK(y.type() == root.type());
      const Tensor expected = square(tape.constant(root.value())).value();
      for (std::int64_t i = 0; i < expected.elements(); ++i) {
        CHECK_THAT(y.value().at(i), WithinAbs(expected.at(i), tolerance * (1 + expected.at(i))));
      }
    }
  }
}

TEST_CASE("derivatives of squares of roots are those of the sum of squares") {
  Tape tape;
  const Var x = tape.parameter(Tensor::from({3.0, -4.0, 0.0, 0.0}, {2, 2}));
  const Var weights = tape.constant(Tensor::from({1.0, 0.5}, {2}));
  const auto sums = [&](const Var& y) { return sum(y * weights); };
  for (const Var& y : squares([](const Var& z) { return norm(z, 2, {1}); }, x)) {
    const Tensor g = gradient(sums(y), x).value();
    const Tensor h = hessian(sums(y), x);
    for (std::int64_t i = 0; i < 4; ++i) {
      CHECK(g.at(i) == 2 * x.value().at(i) * (i < 2 ? 1 : 0.5));
      CHECK(h.at(5 * i) == (i < 2 ? 2 : 1));
    }
  }
}

TEST_CASE("squares of roots have a derivative by the root, and by what it is made of") {
  Tape tape;
  const Var x = tape.parameter(Tensor::from({3.0, -4.0}, {2}));
  const Var doubled = x * 2.0;
  const auto root = [&](const Var& z) { return norm(z * 1.0); };
  const Var first = root(doubled);
  for (const Var& y : {square(first), pow(first, 2), first * first}) {
    CHECK(gradient(y, first).item() == 20);
    CHECK_THAT(hessian(y, first).item(), WithinAbs(2, 1e-14));
    const std::vector<Var> both = gradient(y, {first, x});
    CHECK(both[0].item() == 20);
    CHECK_THAT(both[1].value().at(0), WithinAbs(24, 1e-13));
    CHECK_THAT(gradient(y, doubled).value().at(1), WithinAbs(-16, 1e-13));
    CHECK_THAT(jvp(y, first, full_like(first, 3)).item(), WithinAbs(60, 1e-13));
  }
  // Two roots that are recorded alike, by values that only one of them is made of.
  const Var scaled = doubled * 1.0;
  const Var second = norm(scaled);
  const Var product = first * second;
  CHECK(gradient(product, second).item() == 10);
  CHECK_THAT(gradient(product, scaled).value().at(0), WithinAbs(6, 1e-13));
  CHECK_THAT(gradient(product, doubled).value().at(0), WithinAbs(12, 1e-13));
  CHECK_THAT(hessian(product, x).at(0), WithinAbs(8, 1e-12));
}

TEST_CASE("products of roots of other shapes or of other precision are no squares") {
  Tape tape;
  const Var x = tape.parameter(Tensor::from({3.0, -4.0, 12.0}, {1, 3}));
  const Var wide = norm(broadcast_to(x, {2, 3})) * norm(broadcast_to(x, {5, 3}));
  const double expected = 2 * std::sqrt(10);  // √2·√5·|x|²
  for (std::int64_t i = 0; i < 3; ++i) {
    CHECK_THAT(gradient(wide, x).value().at(i), WithinAbs(expected * x.value().at(i), 1e-12));
  }
  const Var rows = tape.parameter(Tensor::from({3.0, -4.0, 5.0, 12.0}, {2, 2}));
  const Var all = norm(rows, 2, {1}, true) * norm(rows, 2, {1});  // of all pairs of rows
  const Var sum_of_norms = sum(norm(rows, 2, {1}));
  const Tensor of_pairs = gradient(sum(all), rows).value();
  const Tensor of_square = gradient(sum_of_norms * sum_of_norms, rows).value();
  const Var flat = tape.parameter(Tensor::from({3.0, -4.0}, {2}));
  const Var pairs = abs(reshape(flat, {2, 1})) * abs(reshape(flat, {1, 2}));
  CHECK_THAT(gradient(sum(pairs), flat).value().at(1), WithinAbs(-14, 1e-12));
  for (std::int64_t i = 0; i < 4; ++i)
    CHECK_THAT(of_pairs.at(i), WithinAbs(of_square.at(i), 1e-12));
  const auto through = [&](DType dtype) { return norm(cast(cast(x, dtype), DType::f64)); };
  const Var rounded = through(DType::f16) * through(DType::bf16);
  CHECK_THAT(gradient(rounded, x).value().at(0), WithinAbs(6, 0.1));
}

TEST_CASE("other products stay as they are") {
  Tape tape;
  const Var x = tape.parameter(Tensor::from({3.0, -4.0}, {2}));
  const Var other = tape.parameter(Tensor::from({1.0, 2.0}, {2}));
  CHECK(square(norm(x, 1)).item() == 49);
  CHECK_THAT((norm(x) * norm(other)).item(), WithinAbs(5 * std::sqrt(5), 1e-14));
  CHECK((norm(x, 1) * norm(x, 2)).item() == 35);
  // A user's operation may have any name.
  const CustomOperation lesser({
      .name = "hypot",
      .forward =
          [](const CustomCall& call) {
            for (std::size_t i = 0; i < 2; ++i) {
              call.outputs[0].data<double>()[i] =
                  std::min(call.inputs[0].data<double>()[i], call.inputs[1].data<double>()[i]);
            }
          },
  });
  CHECK(square(lesser({x, other})).value().at(0) == 1);
  // No derivative flows through a root that is recorded without.
  const Var blocked = [&] {
    const Tape::NoGradient none(tape);
    return norm(x);
  }();
  CHECK(gradient(square(blocked), x).value().at(0) == 0);
  // The square of each element is subnormal in f16, the sum is not.
  const Tensor small = Tensor::full({64}, 1e-3, DType::f16);
  const double expected = 64 * small.at(0) * small.at(0);
  CHECK(std::abs(square(norm(tape.parameter(small))).item() / expected - 1) < 2e-3);
}

}  // namespace
}  // namespace palimpsest::squared_roots_test
