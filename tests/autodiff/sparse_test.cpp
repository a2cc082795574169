#include "autodiff/sparse.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include "autodiff/eigen.h"
#include "autodiff/eigen_sparse.h"
#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/shape.h"
#include "tests/catch.h"
#include "tests/error_of.h"

namespace sparse_test {

using namespace palimpsest;
using Catch::Matchers::Contains;

namespace {

/// About `each` entries per row at scattered positions.
Eigen::SparseMatrix<double> scattered(int rows, int columns, int each) {
  std::vector<Eigen::Triplet<double>> entries;
  for (int i = 0; i < rows; ++i) {
    for (int e = 0; e < i % (2 * each); ++e) {
      entries.emplace_back(i, (i * 31 + e * e * 17 + e) % columns, 1.0 + i % 7 - 0.5 * e);
    }
  }
  Eigen::SparseMatrix<double> matrix(rows, columns);
  matrix.setFromTriplets(entries.begin(), entries.end());
  return matrix;
}

}  // namespace

TEST_CASE("the product with an Eigen sparse matrix and its transpose are Eigen's", "[sparse]") {
  const Eigen::SparseMatrix<double> matrix = scattered(40, 30, 4);
  const Eigen::SparseMatrix<double, Eigen::RowMajor> rows = matrix;
  const Tensor x = Tensor::normal({30, 3}, 1, 0, 1, DType::f64);
  const Tensor z = Tensor::normal({40, 3}, 2, 0, 1, DType::f64);
  Tape tape;
  const Tensor y = sparse_matmul(matrix, tape.constant(x)).value();
  CHECK(as_matrix<double>(y).isApprox(matrix * as_matrix<double>(x), 1e-14));
  CHECK(same_bits(sparse_matmul(rows, tape.constant(x)).value(), y));
  const Tensor back = sparse_matmul(matrix, tape.constant(z), {.transpose = true}).value();
  CHECK(as_matrix<double>(back).isApprox(matrix.transpose() * as_matrix<double>(z), 1e-14));
}

TEST_CASE("the gradient of stored values is the outer product at their places", "[sparse]") {
  const Eigen::SparseMatrix<double> matrix = scattered(12, 9, 3);
  const SparseTensor parts = to_sparse(matrix);
  Tape tape;
  const Var values = tape.parameter(parts.values);
  const Var x = tape.parameter(Tensor::normal({9}, 1, 0, 1, DType::f64));
  const Var gradients = gradient(sparse_matmul(parts.pattern, values, x), values);
  const SparsePattern::Lines& lines = parts.pattern.by_row();
  for (std::size_t e = 0; e < lines.other.size(); ++e) {
    CHECK(gradients.value().at(static_cast<std::int64_t>(e)) == x.value().at(lines.other[e]));
  }
}

TEST_CASE("sparse products have the same bits at any thread count", "[sparse]") {
  const tbb::global_control eight(tbb::global_control::max_allowed_parallelism, 8);
  const SparseTensor parts = to_sparse(scattered(3000, 2000, 20));
  const auto run = [&](int threads) {
    return tbb::task_arena(threads).execute([&] {
      Tape tape;
      const Var values = tape.parameter(parts.values.to(DType::f32));
      const Var x = tape.parameter(Tensor::normal({2, 2000, 5}, 3));
      const Var y = sparse_matmul(parts.pattern, values, x);
      const std::vector<Var> adjoints = gradient(y * y, {values, x});
      return std::vector<Tensor>{y.value(), adjoints[0].value(), adjoints[1].value()};
    });
  };
  const std::vector<Tensor> one = run(1);
  for (const int threads : {2, 8}) {
    const std::vector<Tensor> many = run(threads);
    for (std::size_t i = 0; i < one.size(); ++i) CHECK(same_bits(one[i], many[i]));
  }
}

TEST_CASE("a sparse product with a vector has the bits of one of several columns", "[sparse]") {
  const SparseTensor parts = to_sparse(scattered(40, 30, 4));
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    for (const bool transpose : {false, true}) {
      const Shape shape{3, transpose ? 40 : 30, 2};
      Tape tape;
      const Var values = tape.constant(parts.values.to(dtype));
      const Var x = tape.constant(Tensor::normal(shape, 4, 0, 1, dtype));
      const Var both = sparse_matmul(parts.pattern, values, x, {.transpose = transpose});
      for (std::int64_t column = 0; column < 2; ++column) {
        const Slice range{.start = column, .stop = column + 1};
        const Var one =
            sparse_matmul(parts.pattern, values, slice(x, 2, range), {.transpose = transpose});
        CHECK(same_bits(one.value(), slice(both, 2, range).value()));
      }
    }
  }
}

TEST_CASE("sparse patterns and products that make no sense are explained", "[sparse]") {
  using Starts = std::vector<std::int64_t>;
  const auto pattern = [](Starts starts, std::vector<std::int32_t> columns) {
    return error_of([&] { SparsePattern(2, 3, std::move(starts), std::move(columns)); });
  };
  CHECK_THAT(pattern({0, 1}, {0}), Contains("2 row starts") && Contains("than the 2 rows"));
  CHECK_THAT(pattern({0, 2, 1}, {0}), Contains("must ascend"));
  CHECK_THAT(pattern({0, 1, 2}, {0, 3}), Contains("column 3 of a matrix with 3 columns"));
  CHECK_THAT(error_of([] { SparsePattern(-1, 3, {0}, {}); }), Contains("-1 rows"));

  const SparsePattern good(2, 3, {0, 1, 2}, {0, 2});
  Tape tape;
  const auto zeros = [&](const Shape& shape) { return tape.constant(Tensor::zeros(shape)); };
  CHECK_THAT(error_of([&] { sparse_matmul(good, zeros({3}), zeros({3, 1})); }),
             Contains("[sparse_matmul]") && Contains("2 entries") && Contains("shape (3)"));
  const Var whole = tape.constant(Tensor::zeros({2}, DType::i32));
  CHECK_THROWS_AS(sparse_matmul(good, whole, zeros({3, 1})), DTypeError);
  CHECK_THAT(
      error_of([&] { sparse_matmul(good, zeros({2}), zeros({2, 1})); }),
      Contains("(2, 3)") && Contains("does not multiply") && Contains("give matrices with 3 rows"));
  CHECK_THAT(error_of([&] { sampled_matmul(good, zeros({2, 1}), zeros({3, 2})); }),
             Contains("[sampled_matmul]") && Contains("does not sample"));
}

}  // namespace sparse_test
