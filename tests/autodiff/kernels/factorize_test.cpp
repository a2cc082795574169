#include "autodiff/kernels/factorize.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <Eigen/Dense>
#include <cstring>

#include "autodiff/eigen.h"
#include "tests/catch.h"

namespace factorize_test {

using namespace palimpsest;

namespace {

template <class T>
using Matrix = Eigen::Matrix<T, -1, -1, Eigen::RowMajor>;

template <class T>
Matrix<T> random(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  return as_matrix<T>(Tensor::uniform({rows, columns}, seed, -1, 1, dtype_of<T>()));
}

/// Avoids Eigen's blocked product, which takes seconds to compile at each use.
template <class T>
Matrix<T> product(const Matrix<T>& a, const Matrix<T>& b) {
  return a.lazyProduct(b);
}

template <class T>
Matrix<T> transposed(const Matrix<T>& m) {
  return m.transpose();
}

template <class T>
View<T> view(Matrix<T>& m) {
  return {m.data(), m.rows(), m.cols(), m.cols()};
}

/// Calls `f(products)` in an arena of `threads` threads, with exactly the workspace that it
/// measures.
template <class T, class F>
void run(bool split, int threads, F f) {
  Products<T> measure(split, threads);
  f(measure);
  const Bytes bytes = measure.workspace_bytes();
  const Buffer workspace = allocate_buffer(bytes);
  Products<T> products(split, std::span(workspace.get(), static_cast<std::size_t>(bytes)));
  tbb::task_arena(threads).execute([&] { f(products); });
}

template <class T>
bool same(const Matrix<T>& a, const Matrix<T>& b) {
  return std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(T)) == 0;
}

/// Runs `f` with 1, 2 and 8 threads and checks that `result` has the same bits each time.
template <class T, class F>
void check_threads(F f) {
  const tbb::global_control eight(tbb::global_control::max_allowed_parallelism, 8);
  const Matrix<T> one = f(1);
  CHECK(same(one, f(2)));
  CHECK(same(one, f(8)));
}

}  // namespace

TEMPLATE_TEST_CASE("triangular systems of every kind are solved", "[factorize]", float, double) {
  const auto n = GENERATE(as<std::int64_t>(), 0, 1, 5, 16, 17, 100);
  const auto columns = GENERATE(as<std::int64_t>(), 0, 1, 33);
  const bool split = GENERATE(false, true);
  Matrix<TestType> a = random<TestType>(n, n, 1) / static_cast<TestType>(n + 1);
  a.diagonal().array() += 2;
  for (int flags = 0; flags < 16; ++flags) {
    CAPTURE(n, columns, split, flags);
    const Triangle triangle{.upper = (flags & 1) != 0, .unit = (flags & 2) != 0};
    const bool transpose = (flags & 4) != 0;
    const bool right = (flags & 8) != 0;
    const Matrix<TestType> b =
        right ? random<TestType>(columns, n, 2) : random<TestType>(n, columns, 2);
    Matrix<TestType> x = b;
    run<TestType>(split, 3, [&](Products<TestType>& products) {
      const View<TestType> m = transpose ? view(a).transposed() : view(a);
      solve_triangular(m, triangle, right ? view(x).transposed() : view(x), products);
    });
    Matrix<TestType> m = transpose ? transposed(a) : a;
    if (triangle.unit) m.diagonal().setOnes();
    const Matrix<TestType> dense =
        triangle.upper ? Matrix<TestType>(m.template triangularView<Eigen::Upper>())
                       : Matrix<TestType>(m.template triangularView<Eigen::Lower>());
    const Matrix<TestType> back = right ? product(x, transposed(dense)) : product(dense, x);
    const TestType error = b.size() == 0 ? 0 : (back - b).cwiseAbs().maxCoeff();
    CHECK(error < 20 * std::numeric_limits<TestType>::epsilon());
  }
}

TEMPLATE_TEST_CASE("factors multiply to the matrix they are of", "[factorize]", float, double) {
  const auto n = GENERATE(as<std::int64_t>(), 0, 1, 4, 16, 17, 50, 300);
  const bool split = GENERATE(false, true);
  CAPTURE(n, split);
  const TestType allowed =
      4 * static_cast<TestType>(n + 1) * std::numeric_limits<TestType>::epsilon();
  const Matrix<TestType> a = random<TestType>(n, n, 3);
  const auto close = [&](const Matrix<TestType>& x, const Matrix<TestType>& y) {
    return n == 0 || (x - y).cwiseAbs().maxCoeff() <= allowed;
  };

  Matrix<TestType> definite = product(a, transposed(a)) / static_cast<TestType>(n + 1);
  definite.diagonal().array() += 1;
  Matrix<TestType> l = definite.template triangularView<Eigen::Lower>();
  std::int64_t failed = 0;
  run<TestType>(split, 3,
                [&](Products<TestType>& products) { failed = factor_cholesky(view(l), products); });
  CHECK(failed == -1);
  l = Matrix<TestType>(l.template triangularView<Eigen::Lower>());
  CHECK(close(product(l, transposed(l)), definite));

  Matrix<TestType> lu = a;
  std::vector<std::int64_t> exchanges(static_cast<std::size_t>(n));
  run<TestType>(split, 3, [&](Products<TestType>& products) {
    failed = factor_lu(view(lu), exchanges.data(), products);
  });
  CHECK(failed == -1);
  Matrix<TestType> permuted = a;
  for (std::int64_t i = 0; i < n; ++i) {
    permuted.row(i).swap(permuted.row(exchanges[static_cast<std::size_t>(i)]));
  }
  const Matrix<TestType> upper = lu.template triangularView<Eigen::Upper>();
  const Matrix<TestType> lower = lu.template triangularView<Eigen::UnitLower>();
  CHECK(close(product(lower, upper), permuted));
  CHECK((n == 0 ||
         lu.template triangularView<Eigen::StrictlyLower>().toDenseMatrix().cwiseAbs().maxCoeff() <=
             1));
}

TEST_CASE("the pivot that fails is named", "[factorize]") {
  Products<double> products(false, std::span<std::byte>());
  Matrix<double> a = Matrix<double>::Identity(10, 10);
  a(6, 6) = -1;
  CHECK(factor_cholesky(view(a), products) == 6);
  a(6, 6) = std::numeric_limits<double>::quiet_NaN();
  CHECK(factor_cholesky(view(a), products) == 6);

  std::vector<std::int64_t> exchanges(40);
  Matrix<double> b = random<double>(40, 40, 1);
  b.col(20) = b.col(3);
  b.row(30).setZero();
  run<double>(false, 1, [&](Products<double>& own) {
    const std::int64_t failed = factor_lu(view(b), exchanges.data(), own);
    if (!own.measures()) CHECK(failed == 39);
  });
}

TEST_CASE("factors have the same bits at any thread count", "[factorize]") {
  const Matrix<float> a = random<float>(300, 300, 5);
  Matrix<float> definite = product(a, transposed(a));
  definite.diagonal().array() += 1;
  check_threads<float>([&](int threads) {
    Matrix<float> l = definite;
    run<float>(true, threads,
               [&](Products<float>& products) { factor_cholesky(view(l), products); });
    return Matrix<float>(l.triangularView<Eigen::Lower>());
  });
  check_threads<float>([&](int threads) {
    Matrix<float> lu = a;
    std::vector<std::int64_t> exchanges(300);
    run<float>(true, threads,
               [&](Products<float>& products) { factor_lu(view(lu), exchanges.data(), products); });
    return lu;
  });
  check_threads<float>([&](int threads) {
    Matrix<float> x = random<float>(300, 500, 6);
    Matrix<float> m = definite;
    run<float>(true, threads, [&](Products<float>& products) {
      solve_triangular(view(m), {}, view(x), products);
    });
    return x;
  });
}

}  // namespace factorize_test
