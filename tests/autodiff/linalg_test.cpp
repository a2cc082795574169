#include "autodiff/operations/linalg.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <cmath>
#include <limits>

#include "autodiff/eigen.h"
#include "autodiff/execute.h"
#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/construction.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/functions/exponential.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/products.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"
#include "checkpoint/checkpoint.h"
#include "tests/catch.h"
#include "tests/error_of.h"

namespace linalg_test {

using namespace palimpsest;
using Catch::Matchers::Contains;

namespace {

Tensor normal(const Shape& shape, std::uint64_t seed) {
  return Tensor::normal(shape, seed, 0, 1, DType::f64);
}

/// A symmetric positive definite matrix.
Var definite(Tape& tape, const Shape& shape, std::uint64_t seed) {
  const Var a = tape.constant(normal(shape, seed));
  const auto n = static_cast<double>(shape.size(-1));
  Tensor one = Tensor::zeros({shape.size(-1), shape.size(-1)}, DType::f64);
  as_matrix<double>(one).setIdentity();
  return matmul(a, a, {.transpose_b = true}) / n + tape.constant(one);
}

double largest(const Var& x) { return max(abs(x)).item(); }

Tensor with_diagonal(std::initializer_list<double> diagonal) {
  const auto n = static_cast<std::int64_t>(diagonal.size());
  const Tensor result = Tensor::zeros({n, n}, DType::f64);
  std::int64_t i = 0;
  for (const double x : diagonal)
    result.data<double>()[static_cast<std::size_t>(i++ * (n + 1))] = x;
  return result;
}

}  // namespace

TEST_CASE("factorisations undo what they factor, small and many, large and few", "[linalg]") {
  const Shape shape = GENERATE(values<Shape>({{2, 3, 5, 5}, {150, 150}, {20, 40, 40}, {0, 3, 3}}));
  CAPTURE(shape);
  Tape tape;
  const Var a = definite(tape, shape, 1);
  Shape right = shape;
  right[shape.rank() - 1] = 3;
  const Var b = tape.constant(normal(right, 2));
  const auto small = [&](const Var& x) { return x.shape().elements() == 0 || largest(x) < 1e-12; };

  const Var l = cholesky(a);
  CHECK(small(matmul(l, l, {.transpose_b = true}) - a));
  CHECK(small(triu(l, 1)));
  CHECK(small(matmul(l, triangular_solve(l, b)) - b));
  CHECK(small(matmul(a, solve(a, b)) - b));
  CHECK(small(matmul(solve(a, b, {.transpose = true}), a, {.transpose_a = true}) -
              transpose(b, -2, -1)));
  CHECK(small(matmul(inverse(a), a) - matmul(a, inverse(a))));

  const auto [q, r] = qr(tape.constant(normal(shape, 3)));
  CHECK(small(matmul(q, r) - tape.constant(normal(shape, 3))));
  CHECK(small(matmul(q, q, {.transpose_a = true}) - matmul(a, inverse(a))));
  CHECK(small(tril(r, -1)));

  const auto [w, v] = eigh(a);
  Shape row = w.shape();
  row.insert(row.rank() - 1, 1);
  CHECK(small(matmul(v * reshape(w, row), v, {.transpose_b = true}) - a));
  CHECK(small(logdet(a) - sum(log(w), {-1})));
  CHECK(small(slogdet(a).log_magnitude - logdet(a)));
}

TEST_CASE("eigenvalues of f32 matrices are those of f64, rounded", "[linalg]") {
  Tape tape;
  const Var narrow = tape.constant(Tensor::normal({60, 60}, 8));
  const Tensor rounded = eigh(narrow).values.value();
  const Tensor wide = eigh(cast(narrow, DType::f64)).values.value();
  for (std::int64_t i = 0; i < 60; ++i) {
    CHECK(rounded.at(i) == static_cast<double>(static_cast<float>(wide.at(i))));
  }
}

TEST_CASE("qr and eigh have the signs that make them unique, eigh ascending values", "[linalg]") {
  Tape tape;
  const Var a = tape.constant(normal({4, 7, 5}, 4));
  const Tensor r = qr(a).r.value();
  for (std::int64_t i = 0; i < 4; ++i) {
    for (std::int64_t j = 0; j < 5; ++j) CHECK(r.at(i * 25 + j * 6) >= 0);
  }
  const auto [values, vectors] = eigh(tape.constant(normal({9, 9}, 5)));
  const Tensor w = values.value();
  for (std::int64_t i = 1; i < 9; ++i) CHECK(w.at(i - 1) <= w.at(i));
  const Tensor v = vectors.value();
  for (std::int64_t j = 0; j < 9; ++j) {
    const auto column = as_matrix<const double>(v).col(j);
    Eigen::Index first = 0;
    while (std::abs(column(first)) < 0.9 * column.cwiseAbs().maxCoeff()) ++first;
    CHECK(column(first) > 0);
  }
  // If the elements have equal magnitude, the first one decides the sign in every precision.
  const Var even = tape.constant(Tensor::from({1.0, 0.5, 0.5, 1.0}, {2, 2}));
  CHECK(eigh(even).vectors.value().at(0) > 0);
  CHECK(eigh(cast(even, DType::f32)).vectors.value().at(0) > 0);
}

TEST_CASE("determinants have their sign, and are zero for singular matrices", "[linalg]") {
  Tape tape;
  const Tensor swapped = Tensor::from({0.0, 2.0, 3.0, 0.0}, {2, 2});
  CHECK_THAT(det(tape.constant(swapped)).item(), Catch::Matchers::WithinAbs(-6, 1e-12));
  const auto [sign, magnitude] = slogdet(tape.constant(swapped));
  CHECK(sign.item() == -1);
  CHECK_THAT(magnitude.item(), Catch::Matchers::WithinAbs(std::log(6), 1e-12));
  const Var singular = tape.constant(Tensor::ones({3, 3}, DType::f64));
  CHECK(det(singular).item() == 0);
  CHECK(slogdet(singular).sign.item() == 0);
  CHECK(det(tape.constant(Tensor::zeros({0, 0}, DType::f64))).item() == 1);
}

TEST_CASE("the gradient of a determinant is the adjugate, at singular matrices too", "[linalg]") {
  Tape tape;
  const auto slope = [&](const Tensor& a) {
    const Var x = tape.parameter(a);
    return gradient(det(x), x).value();
  };
  CHECK(same_bits(slope(with_diagonal({2, 0, 3})), with_diagonal({0, 6, 0})));
  CHECK(same_bits(slope(with_diagonal({2, 0, 0})), Tensor::zeros({3, 3}, DType::f64)));
  CHECK(same_bits(slope(Tensor::zeros({1, 1}, DType::f64)), Tensor::ones({1, 1}, DType::f64)));
  // Linearly dependent rows whose elimination leaves a pivot of the size of rounding errors.
  const Tensor dependent = Tensor::from({0.1, 0.2, 0.3, 0.7}, {2, 2});
  dependent.data<double>()[3] = 0.6;
  const Tensor g = slope(dependent);
  for (const auto& [i, expected] : {std::pair(0, 0.6), {1, -0.3}, {2, -0.2}, {3, 0.1}}) {
    CHECK_THAT(g.at(i), Catch::Matchers::WithinAbs(expected, 1e-15));
  }
  const Var x = tape.parameter(with_diagonal({0, 0, 3}));
  const Var each = tape.constant(Tensor::ones({3, 3}, DType::f64));
  const Var first = gradient(det(x), x);
  const Var second = gradient(sum(first * each), x);  // through the third row and column
  CHECK(same_bits(second.value(),
                  Tensor::from({3.0, -3.0, 0.0, -3.0, 3.0, 0.0, 0.0, 0.0, 0.0}, {3, 3})));
  const Var third = gradient(sum(second * each), x);
  CHECK(sum(third * each).item() == 0);  // the third derivative along the matrix of ones
  const Tensor single = with_diagonal({1e-20, 1, 1e-20});
  const Tensor tiny = slope(single);
  CHECK_THAT(tiny.at(4), Catch::Matchers::WithinRel(1e-40, 1e-12));
  CHECK_THAT(tiny.at(0), Catch::Matchers::WithinRel(1e-20, 1e-12));
  CHECK(std::isnan(slope(with_diagonal({1, std::nan(""), 2})).at(0)));
}

TEST_CASE("the gradient of a determinant is finite where a pivot is subnormal", "[linalg]") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  Tape tape;
  const double least = dtype == DType::f64 ? 0x1p-1074 : 0x1p-149;
  const Var a = tape.parameter(Tensor::from({least, 0.0, 0.0, 2.0}, {2, 2}).to(dtype));
  const Tensor g = gradient(det(a), a).value();
  CHECK(g.at(0) == 2);
  CHECK(std::abs(g.at(3)) <= least);
  const Var single = tape.parameter(Tensor::from({least}, {1, 1}).to(dtype));
  CHECK(gradient(gradient(square(det(single)), single), single).item() == 2);
}

TEST_CASE("gradients of determinants of regular matrices are the same by both ways", "[linalg]") {
  Tape tape;
  const Var a = tape.parameter(normal({3, 9, 9}, 6));
  const Var y = det(a);
  const Var expected = reshape(y, {3, 1, 1}) * transpose(inverse(a));
  CHECK(largest(gradient(y, a) - expected) < 1e-11 * largest(expected));
  const Var direction = tape.constant(normal({3, 9, 9}, 7));
  const Var by_inverse = gradient(sum(expected * direction), a);
  const Var ours = gradient(sum(gradient(y, a) * direction), a);
  CHECK(largest(ours - by_inverse) < 1e-10 * largest(by_inverse));
}

TEST_CASE("qr of wide matrices factors the square in front", "[linalg]") {
  Tape tape;
  const Var a = tape.constant(normal({2, 3, 5}, 9));
  const auto [q, r] = qr(a);
  CHECK(q.shape() == Shape{2, 3, 3});
  CHECK(r.shape() == Shape{2, 3, 5});
  CHECK(largest(matmul(q, r) - a) < 1e-13);
  CHECK(largest(tril(r, -1)) == 0);
  CHECK(qr(tape.constant(Tensor::zeros({0, 3}, DType::f64))).r.shape() == Shape{0, 3});
}

TEST_CASE("decompositions of no matrices at all have empty gradients", "[linalg]") {
  const DType dtype = GENERATE(DType::f32, DType::f64, DType::f16, DType::bf16);
  const std::int64_t n = GENERATE(3, 64, 100);
  CAPTURE(name_of(dtype), n);
  Tape tape;
  const Var a = tape.parameter(Tensor::zeros({0, n, n}, dtype));
  const Qr decomposed = qr(a);
  const Var total = sum(inverse(a)) + sum(solve(a, a)) + sum(cholesky(a)) + sum(det(a)) +
                    sum(decomposed.q) + sum(decomposed.r) + sum(eigh(a).values);
  CHECK(total.item() == 0);
  CHECK(gradient(total, a).value().shape() == Shape{0, n, n});
}

TEST_CASE("equal eigenvalues have a derivative, their vectors an error", "[linalg]") {
  Tape tape;
  const Var a = tape.parameter(with_diagonal({2, 2, 2}));
  const auto [w, v] = eigh(a);
  const Tensor g = gradient(sum(exp(w)), a).value();
  for (std::int64_t i = 0; i < 9; ++i) {
    CHECK_THAT(g.at(i), Catch::Matchers::WithinAbs(i % 4 == 0 ? std::exp(2) : 0, 1e-12));
  }
  const auto line = std::to_string(tape.where(w.node()).line());
  const Var weights = tape.constant(normal({3, 3}, 5));  // not symmetric: the basis matters
  check_error([&, &vectors = v] { gradient(sum(vectors * weights), a).value(); },
              {"[eigh]", "eigenvalues 0 and 1 of matrix 0 of shape (3, 3) are equal",
               "linalg_test.cpp:" + line});
}

TEST_CASE("equal eigenvalues have no term in losses that do not depend on the basis", "[linalg]") {
  Tape tape;
  // 2, 2 and 5 with rounding errors, and exactly.
  const Var turn = tape.constant(qr(tape.constant(normal({3, 3}, 4))).q.value());
  const Var exact = tape.parameter(with_diagonal({2, 2, 5}));
  const Var near = tape.parameter(matmul(matmul(turn, exact), turn, {.transpose_b = true}).value());
  const Var weights = tape.constant(normal({3, 3}, 5));
  const Var symmetric = weights + transpose(weights);
  for (const Var& a : {exact, near}) {
    const Var v = eigh(a).vectors;
    const Var both = slice(v, 1, {.stop = 2});
    const Var projector = matmul(both, both, {.transpose_b = true});
    const Var last = slice(v, 1, {.start = 2});
    const Var others = -matmul(last, last, {.transpose_b = true});
    // The projector is 1 minus that of the other vector, which has a derivative.
    const Tensor g = gradient(sum(projector * symmetric), a).value();
    const Tensor expected = gradient(sum(others * symmetric), a).value();
    for (std::int64_t i = 0; i < 9; ++i) {
      CHECK_THAT(g.at(i), Catch::Matchers::WithinAbs(expected.at(i), 1e-12));
    }
    CHECK(std::abs(max(abs(gradient(sum(v * v), a))).item()) < 1e-12);
  }
  // The limit of this loss is not 0 at equal eigenvalues: its gradient is that of Σ a·symmetric.
  const Var a = exact * 1.0;
  const auto [w, v] = eigh(a);
  const Var turned = matmul(matmul(v, a, {.transpose_a = true}), v);
  const Var from_exact = matmul(matmul(v, exact, {.transpose_a = true}), v);
  for (const Var& values : {w, eigh(a).values, eigh(exact).values, diagonal(turned),
                            diagonal(from_exact), stop_gradient(w)}) {
    const Var again = matmul(v * values, v, {.transpose_b = true});
    check_error([&] { gradient(sum(again * symmetric), exact).value(); },
                {"[eigh]", "eigenvalues 0 and 1", "are equal"});
  }
  // In a checkpoint, it is not known what the other arguments depend on.
  const auto restored = [](const Var& x, const Var& values) {
    const Var own = eigh(x).vectors;
    return matmul(own * values, own, {.transpose_b = true});
  };
  check_error([&] { gradient(sum(checkpoint(restored, exact, w) * symmetric), exact).value(); },
              {"[eigh]", "eigenvalues 0 and 1", "are equal"});
}

TEST_CASE("matrices that cannot be factored are named, with the line that recorded it",
          "[linalg]") {
  Tape tape;
  const auto at = [](const Var& x) {
    return "linalg_test.cpp:" + std::to_string(x.tape().where(x.node()).line());
  };
  const auto check = [&](const Var& x, std::initializer_list<std::string> words) {
    check_error([&] { x.value(); }, words);
    check_error([&] { x.value(); }, {at(x)});
  };
  const Var mixed =
      stack({tape.constant(with_diagonal({1, 1, 1})), tape.constant(with_diagonal({1, 1, -1})),
             tape.constant(with_diagonal({-1, 1, 1}))},
            0);
  check(cholesky(mixed),
        {"[cholesky]", "matrix 1 of 3 of size 3 is not positive definite", "row 2", "eigh"});
  const Var singular = tape.constant(with_diagonal({1, 0, 2}));
  const Var b = tape.constant(Tensor::ones({3, 1}, DType::f64));
  check(solve(singular, b), {"[solve]", "matrix 0 of 1 of size 3 is singular", "qr"});
  check(inverse(singular), {"[inverse]", "no pivot for column 1"});
  check(triangular_solve(singular, b), {"[triangular_solve]", "element 1 of the diagonal is 0"});
  check(logdet(mixed), {"[logdet]", "matrix 1", "slogdet"});
  const Var bad = tape.constant(with_diagonal({1, std::nan(""), 2}));
  check(eigh(bad).values, {"[eigh]", "do not converge", "not finite"});
  // An adjoint that fails reports the line of the forward operation.
  const Var x = tape.parameter(with_diagonal({1, 0, 2}));
  const Var d = slogdet(x).log_magnitude;
  check_error([&] { gradient(d, x).value(); }, {"[inverse]", "singular", at(d)});
}

TEST_CASE("shapes and dtypes that do not fit are explained when recorded", "[linalg]") {
  Tape tape;
  const auto zeros = [&](const Shape& shape, DType dtype = DType::f32) {
    return tape.constant(Tensor::zeros(shape, dtype));
  };
  CHECK_THAT(error_of([&] { cholesky(zeros({2, 3})); }),
             Contains("[cholesky]") && Contains("square") && Contains("(2, 3)"));
  CHECK_THAT(error_of([&] { eigh(zeros({3})); }), Contains("[eigh]") && Contains("two axes"));
  CHECK_THAT(error_of([&] { inverse(zeros({3, 3}, DType::i32)); }),
             Contains("i32 (3, 3)") && Contains("cast"));
  CHECK_THAT(error_of([&] { solve(zeros({3, 3}), zeros({4, 1})); }),
             Contains("[solve]") && Contains("(4, 1)") && Contains("the same number of rows"));
  CHECK_THAT(error_of([&] { solve(zeros({2, 3, 3}), zeros({4, 3, 1})); }),
             Contains("[solve]") && Contains("(4, 3, 1)"));
  CHECK_THAT(error_of([&] { triangular_solve(zeros({3, 3}), zeros({3, 4}), {.right = true}); }),
             Contains("[triangular_solve]") && Contains("columns"));
}

TEST_CASE("factorisations have the same bits at any thread count", "[linalg]") {
  const tbb::global_control eight(tbb::global_control::max_allowed_parallelism, 8);
  const Shape shape = GENERATE(values<Shape>({{12, 30, 30}, {1, 260, 260}}));
  const auto run = [&](int threads) {
    return tbb::task_arena(threads).execute([&] {
      Tape tape;
      const Var a = cast(definite(tape, shape, 6), DType::f32);
      const Var x = tape.parameter(a.value());
      const Var b = tape.constant(Tensor::normal({shape[1], 7}, 7));
      const Var total = sum(square(cholesky(x))) + sum(solve(x, b)) + sum(logdet(x)) +
                        sum(qr(x).r) + sum(eigh(x).values);
      return std::vector<Tensor>{total.value(), gradient(total, x).value()};
    });
  };
  const std::vector<Tensor> one = run(1);
  for (const int threads : {2, 8}) {
    const std::vector<Tensor> many = run(threads);
    CHECK(same_bits(one[0], many[0]));
    CHECK(same_bits(one[1], many[1]));
  }
}

TEST_CASE("decompositions that cannot be split run in parallel, even few large ones", "[linalg]") {
  Tape tape;
  const Var a = tape.constant(Tensor::zeros({2, 512, 512}));
  for (const Var& made : {eigh(a).values, qr(a).q, svd(a).u, pinv(a)}) {
    const NodeView node(tape.nodes(), made.node());
    CHECK(workspace_of(node, 2) >= 2 * workspace_of(node, 1));
  }
  const NodeView split(tape.nodes(), inverse(a).node());
  CHECK(workspace_of(split, 2) < 2 * workspace_of(split, 1));
}

TEST_CASE("eigenvalues of what is not finite are refused", "[linalg]") {
  const float bad = GENERATE(std::numeric_limits<float>::infinity(), std::nanf(""));
  Tape tape;
  CHECK_THROWS_AS(eigh(tape.constant(Tensor::matrix({{1, 0}, {0, bad}}))).values.value(),
                  ArgumentError);
  CHECK_THROWS_AS(eigh(tape.constant(Tensor::matrix({{bad}}))).values.value(), ArgumentError);
}

}  // namespace linalg_test
