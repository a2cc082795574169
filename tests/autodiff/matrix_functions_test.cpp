#include <cmath>
#include <limits>
#include <vector>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/construction.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/linalg.h"
#include "autodiff/operations/products.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"
#include "tests/catch.h"

namespace palimpsest::matrix_functions_test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::WithinAbs;

Var numbers(Tape& tape, const Shape& shape, std::uint64_t seed) {
  return tape.parameter(Tensor::normal(shape, seed, 0, 1, DType::f64));
}

double largest(const Var& x) { return max(abs(x)).item(); }

Var matrix(Tape& tape, std::initializer_list<std::initializer_list<double>> rows) {
  std::vector<double> all;
  for (const auto& row : rows) all.insert(all.end(), row);
  const auto height = static_cast<std::int64_t>(rows.size());
  return tape.parameter(
      Tensor::from(all, {height, static_cast<std::int64_t>(rows.begin()->size())}));
}

TEST_CASE("the parts of a singular value decomposition have their properties") {
  const Shape shape = GENERATE(values<Shape>({{7, 4}, {3, 4, 7}, {20, 20}, {2, 1, 1}, {5, 1}}));
  CAPTURE(shape);
  Tape tape;
  const Var a = numbers(tape, shape, 1);
  const auto [u, values, vh] = svd(a);
  const std::int64_t k = values.shape().size(-1);
  const Var restored = matmul(u * unsqueeze(values, -2), vh);
  CHECK(largest(restored - a) < 1e-13);
  const Var one = matrix_power(matmul(u, u, {.transpose_a = true}), 0);
  CHECK(largest(matmul(u, u, {.transpose_a = true}) - one) < 1e-14);
  CHECK(largest(matmul(vh, vh, {.transpose_b = true}) - one) < 1e-14);
  CHECK(min(values).item() >= 0);
  const Var before = slice(values, -1, {.stop = k - 1});
  if (k > 1) CHECK(min(before - slice(values, -1, {.start = 1})).item() >= 0);
}

TEST_CASE("singular values far apart keep their digits, and zeros have vectors") {
  Tape tape;
  const Var a = matrix(tape, {{1, 0, 0}, {0, 1e-100, 0}, {0, 0, 0}, {0, 0, 0}});
  const auto [u, values, vh] = svd(a * 1e150);
  CHECK(std::abs(values.value().at(1) / 1e50 - 1) < 1e-14);
  CHECK(values.value().at(2) == 0);
  const Var turned = matmul(u, u, {.transpose_a = true});
  CHECK(largest(turned - matrix_power(turned, 0)) < 1e-14);
}

TEST_CASE("equal singular values have a derivative, their vectors an error") {
  Tape tape;
  const Var a = matrix(tape, {{0, 2}, {2, 0}});
  CHECK(largest(gradient(sum(svdvals(a)), a) - a * 0.5) < 1e-14);
  const Var weights = numbers(tape, {2, 2}, 6);  // not symmetric: the basis matters
  CHECK_THROWS_WITH(gradient(sum(svd(a).u * weights), a).value(),
                    Contains("[svd] singular values 0 and 1 of matrix 0") &&
                        Contains("matrix_functions_test.cpp:"));
}

TEST_CASE("equal singular values have no term in losses that do not depend on the basis") {
  Tape tape;
  const Var turn = qr(numbers(tape, {3, 3}, 5)).q;
  const Var a = tape.parameter((turn * 2.0).value());
  const auto [u, values, vh] = svd(a);
  // The nearest orthogonal matrix q = a·(aᵀ·a)^(-1/2). At a = 2·q, its differential is
  // (da − q·daᵀ·q)/4.
  const Var weights = numbers(tape, {3, 3}, 6);
  const Var g = gradient(sum(matmul(u, vh) * weights), a);
  const Var turned = matmul(matmul(turn, weights, {.transpose_b = true}), turn);
  CHECK(largest(g - (weights - turned) * 0.25) < 1e-12);
  const Var zero = tape.parameter(Tensor::zeros({2, 2}, DType::f64));
  CHECK(largest(gradient(sum(square(svd(zero).u)), zero)) == 0);
  // This loss has another limit at equal values: its gradient is that of Σ a·weights.
  const Var exact = matrix(tape, {{2, 0}, {0, 2}});
  const auto [left, both, right] = svd(exact);
  for (const Var& factors : {both, svdvals(exact), svd(exact).values}) {
    const Var again = matmul(left * factors, right);
    CHECK_THROWS_WITH(gradient(sum(again * numbers(tape, {2, 2}, 7)), exact).value(),
                      Contains("[svd] singular values 0 and 1"));
  }
  CHECK_THROWS_WITH(gradient(sum(matmul(u * svdvals(a), vh) * weights), a).value(),
                    Contains("[svd] singular values"));
}

TEST_CASE("rounding errors of 16 bits do not hide that a loss depends on the basis") {
  Tape tape;
  const std::int64_t n = 128;
  const Var ones = tape.constant(Tensor::ones({n}, DType::bf16));
  const Var a = tape.parameter(diag(ones).value());
  const Var v = eigh(a).vectors;
  const Var weights = tape.constant(Tensor::normal({n, n}, 3, 0, 1, DType::bf16));
  CHECK_THROWS_WITH(gradient(sum(v * weights), a).value(), Contains("[eigh] eigenvalues"));
  CHECK_THROWS_WITH(gradient(sum(square(v + weights)), a).value(), Contains("[eigh] eigenvalues"));
  // All vectors are equal in this loss.
  const Var both = weights + transpose(weights);
  const Var projector = matmul(v, v, {.transpose_b = true});
  CHECK(largest(gradient(sum(projector * both), a)) < 1e-6);
}

TEST_CASE("second derivatives where values are equal are an error") {
  Tape tape;
  const Var a = matrix(tape, {{2, 0}, {0, 2}});
  const Var v = eigh(a).vectors;
  const Var weights = numbers(tape, {2, 2}, 6);
  const Var projector = matmul(v, v, {.transpose_b = true});
  const Var g = gradient(sum(projector * (weights + transpose(weights))), a);
  CHECK(largest(g) < 1e-14);
  CHECK_THROWS_WITH(gradient(sum(g * weights), a).value(), Contains("[eigh] eigenvalues 0 and 1"));
}

TEST_CASE("vectors of a value 0 have no term only if the loss does not depend on the value") {
  Tape tape;
  const Var a = matrix(tape, {{2, 0}, {0, 0}, {0, 0}});
  const auto [u, values, vh] = svd(a);
  const Var first = slice(u, 1, {.stop = 1});
  const Var weights = numbers(tape, {3, 3}, 6);
  const Var projector = matmul(first, first, {.transpose_b = true});
  // dP = e₁·duᵀ + du·e₁ᵀ with du = (0, da₂₁, da₃₁)/2.
  const Tensor g = gradient(sum(projector * weights), a).value();
  const Tensor w = weights.value();
  CHECK_THAT(g.at(2), WithinAbs((w.at(1) + w.at(3)) / 2, 1e-14));
  CHECK_THAT(g.at(3), WithinAbs(0, 1e-14));
  // The gradient of this loss is that of Σ a·other, but the limit of 0/0 is not known.
  const Var other = numbers(tape, {3, 2}, 7);
  for (const Var& factors : {values, svdvals(a)}) {
    const Var again = matmul(u * factors, vh);
    CHECK(std::isnan(gradient(sum(again * other), a).value().at(3)));
  }
}

TEST_CASE("the spectral norm of a singular matrix has a second derivative") {
  Tape tape;
  const Var a = matrix(tape, {{2, 0}, {0, 0}, {0, 0}});
  // σ = 2 + da₁₁ + (da₁₂² + da₂₁² + da₃₁²)/4 + …
  const Tensor h = hessian(matrix_norm(a, MatrixNorm::spectral), a);
  for (std::int64_t i = 0; i < 6; ++i) {
    const double expected = i == 1 || i == 2 || i == 4 ? 0.5 : 0;
    CHECK(std::abs(h.at(7 * i) - expected) < 1e-14);
  }
}

TEST_CASE("projectors of equal eigenvalues have derivatives in every dtype") {
  const DType dtype = GENERATE(DType::f64, DType::f32, DType::bf16, DType::f16);
  Tape tape;
  const Var a = tape.parameter(matrix(tape, {{2, 0, 0}, {0, 2, 0}, {0, 0, 4}}).value().to(dtype));
  const Var v = slice(eigh(a).vectors, 1, {.stop = 2});
  const Var projector = matmul(v, v, {.transpose_b = true});
  // dP = −(e₃·dv₃ᵀ + dv₃·e₃ᵀ) with dv₃ = (da₃₁, da₃₂, 0)/2.
  const Var g = gradient(sum(slice(projector, 1, {.start = 2})), a);
  const double tolerance = is_half(dtype) ? 1e-2 : 1e-6;
  CHECK(std::abs(g.value().at(6) + 0.5) < tolerance);
  CHECK(std::abs(g.value().at(7) + 0.5) < tolerance);
  CHECK(std::abs(g.value().at(3)) < tolerance);
}

TEST_CASE("a Moore-Penrose inverse satisfies the four equations") {
  Tape tape;
  const Var a = matmul(numbers(tape, {2, 6, 3}, 2), numbers(tape, {2, 3, 5}, 3));
  const Var p = pinv(a);
  const Var ap = matmul(a, p);
  const Var pa = matmul(p, a);
  CHECK(largest(matmul(ap, a) - a) < 1e-12);
  CHECK(largest(matmul(pa, p) - p) < 1e-12);
  CHECK(largest(ap - transpose(ap)) < 1e-12);
  CHECK(largest(pa - transpose(pa)) < 1e-12);
  CHECK(largest(pinv(a * 0.0)) == 0);
  // with a large tolerance only the largest singular value counts
  CHECK(std::abs(largest(svdvals(pinv(matrix(tape, {{4, 0}, {0, 1}}), 0.5))) - 0.25) < 1e-15);
}

TEST_CASE("least squares has a residual orthogonal to the columns, or the least norm") {
  Tape tape;
  const Var tall = numbers(tape, {2, 7, 3}, 4);
  const Var b = numbers(tape, {7, 2}, 5);
  const Var x = lstsq(tall, b);
  CHECK(x.shape() == Shape{2, 3, 2});
  CHECK(largest(matmul(tall, matmul(tall, x) - b, {.transpose_a = true})) < 1e-13);
  const Var wide = numbers(tape, {3, 7}, 6);
  const Var c = numbers(tape, {3}, 7);
  CHECK(largest(lstsq(wide, c) - matmul(pinv(wide), c)) < 1e-13);
}

TEST_CASE("exponentials of matrices") {
  Tape tape;
  const double angle = 100;
  const Var turn = matrix_exp(matrix(tape, {{0, angle}, {-angle, 0}}));
  CHECK_THAT(turn.value().at(0), WithinAbs(std::cos(angle), 1e-11));
  CHECK_THAT(turn.value().at(1), WithinAbs(std::sin(angle), 1e-11));
  const Var step = matrix_exp(matrix(tape, {{0, 1e6}, {0, 0}}));
  CHECK(step.value().at(1) == 1e6);
  const Var a = numbers(tape, {5, 40, 40}, 8) * 0.3;
  const Var product = matmul(matrix_exp(a), matrix_exp(-a));
  CHECK(largest(product - matrix_power(a, 0)) < 1e-9);
  const double bad = GENERATE(std::numeric_limits<double>::infinity(), std::nan(""));
  CHECK(std::isnan(matrix_exp(matrix(tape, {{1, bad}, {0, 1}})).value().at(0)));
  // adjoints of any size have the same relative accuracy
  const Var x = numbers(tape, {4, 4}, 9);
  const Var y = sum(matrix_exp(x));
  const Var g = gradient(y, x);
  CHECK(largest(gradient(y * 1e12, x) / 1e12 - g) < 1e-13 * largest(g));
}

TEST_CASE("powers, norms and products of matrices") {
  Tape tape;
  const Var a = numbers(tape, {2, 4, 4}, 10);
  CHECK(largest(matrix_power(a, 7) - matmul(matrix_power(a, 3), matrix_power(a, 4))) < 1e-11);
  CHECK(same_bits(inv(a).value(), inverse(a).value()));
  CHECK(largest(matmul(matrix_power(a, -2), matrix_power(a, 2)) - matrix_power(a, 0)) < 1e-9);
  const Var m = matrix(tape, {{3, -4}, {0, 0}});
  CHECK(matrix_norm(m).item() == 5);
  CHECK(matrix_norm(m, MatrixNorm::one).item() == 4);
  CHECK(matrix_norm(m, MatrixNorm::infinity).item() == 7);
  CHECK_THAT(matrix_norm(m, MatrixNorm::spectral).item(), WithinAbs(5, 1e-14));
  CHECK_THAT(matrix_norm(m, MatrixNorm::nuclear).item(), WithinAbs(5, 1e-14));
  CHECK(matrix_norm(a, MatrixNorm::spectral, true).shape() == Shape{2, 1, 1});
  const Var row = numbers(tape, {2, 4, 3}, 11);
  const Var column = numbers(tape, {3, 4}, 12);
  CHECK(largest(tensordot(row, column, {2, 1}, {0, 1}) - einsum("ijk,kj->i", {row, column})) <
        1e-13);
  CHECK(tensordot(row, column, 0).shape() == Shape{2, 4, 3, 3, 4});
  // a thin matrix at the end: products from the right are cheaper
  const Var product =
      multi_dot({numbers(tape, {9, 9}, 1), numbers(tape, {9, 9}, 2), numbers(tape, {9, 1}, 3)});
  CHECK(tape.shape(tape.inputs(product.node())[1]) == Shape{9, 1});
}

TEST_CASE("what functions of matrices refuse") {
  Tape tape;
  const Var a = numbers(tape, {3, 2}, 1);
  const Var vector = numbers(tape, {4}, 2);
  const Var nan = matrix(tape, {{std::nan("")}});
  CHECK_THROWS_WITH(svd(nan).u.value(), Contains("[svd]") && Contains("not finite"));
  CHECK_THROWS_WITH(pinv(nan).value(), Contains("[pinv]") && Contains("not finite"));
  CHECK_THROWS_WITH(pinv(a, -1.0), Contains("the tolerance is -1"));
  CHECK_THROWS_WITH(matrix_exp(a), Contains("[matrix_exp]") && Contains("square"));
  CHECK_THROWS_WITH(matrix_power(a, 2), Contains("[matrix_power]") && Contains("square"));
  CHECK_THROWS_WITH(lstsq(a, vector), Contains("[lstsq] a (3, 2) and b (4)"));
  CHECK_THROWS_AS(lstsq(a, sum(vector)), ShapeError);
  CHECK_THROWS_AS(matrix_norm(vector), ShapeError);
  CHECK_THROWS_AS(svd(tape.constant(Tensor::zeros({2, 2}, DType::i64))), DTypeError);
  CHECK_THROWS_WITH(tensordot(a, a, 1), Contains("do not have equal sizes in pairs"));
  CHECK_THROWS_WITH(tensordot(a, a, 3), Contains("cannot sum over 3 axes"));
  CHECK_THROWS_WITH(tensordot(a, a, {0, 0}, {0, 1}), Contains("named twice"));
  CHECK_THROWS_WITH(multi_dot({a, a}), Contains("does not continue the chain"));
  CHECK_THROWS_AS(multi_dot({}), ArgumentError);
  const Var whole = tape.constant(Tensor::arange(3));
  CHECK_THROWS_WITH(vecdot(whole, whole), Contains("[vecdot]") && Contains("i64"));
}

}  // namespace
}  // namespace palimpsest::matrix_functions_test
