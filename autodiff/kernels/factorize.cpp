#include "autodiff/kernels/factorize.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "autodiff/parallel.h"

namespace palimpsest {
namespace {

// Up to this size the elimination is done directly. Larger matrices are halved, and the halves are
// connected by a matrix product.
constexpr std::int64_t smallest = 16;
// A symmetric update writes whole blocks with this many rows.
constexpr std::int64_t symmetric_block = 128;

/// Size of the first half of n, a multiple of `smallest`.
std::int64_t half_of(std::int64_t n) { return (n / 2 + smallest - 1) / smallest * smallest; }

template <class T>
auto row_of(View<T> m, std::int64_t i) {
  return Eigen::Map<Eigen::Array<T, 1, -1>>(&m(i, 0), m.columns);
}

/// Substitution for few unknowns, for contiguous rows of x.
template <class T>
void substitute_rows(View<T> m, Triangle triangle, View<T> x) {
  for (std::int64_t step = 0; step < m.rows; ++step) {
    const std::int64_t i = triangle.upper ? m.rows - 1 - step : step;
    auto row = row_of(x, i);
    for (std::int64_t earlier = 0; earlier < step; ++earlier) {
      const std::int64_t j = triangle.upper ? m.rows - 1 - earlier : earlier;
      row -= m(i, j) * row_of(x, j);
    }
    if (!triangle.unit) row /= m(i, i);
  }
}

/// Substitution for contiguous columns of x, one by one; m is gathered first.
template <class T>
void substitute_columns(View<T> m, Triangle triangle, View<T> x) {
  T local[smallest * smallest];
  for (std::int64_t i = 0; i < m.rows; ++i) {
    for (std::int64_t j = 0; j < m.rows; ++j) local[i * smallest + j] = m(i, j);
  }
  for (std::int64_t column = 0; column < x.columns; ++column) {
    T* value = &x(0, column);
    for (std::int64_t step = 0; step < m.rows; ++step) {
      const std::int64_t i = triangle.upper ? m.rows - 1 - step : step;
      const std::int64_t begin = triangle.upper ? i + 1 : 0;
      const std::int64_t end = triangle.upper ? m.rows : i;
      T sum = value[i];
      for (std::int64_t j = begin; j < end; ++j) sum -= local[i * smallest + j] * value[j];
      value[i] = triangle.unit ? sum : sum / local[i * smallest + i];
    }
  }
}

template <class T>
void substitute(View<T> m, Triangle triangle, View<T> x, bool split) {
  if (m.data == nullptr || x.data == nullptr) return;
  const auto run = [&](std::int64_t begin, std::int64_t end) {
    const View<T> part = x.block(0, begin, x.rows, end - begin);
    if (x.column_step == 1)
      substitute_rows(m, triangle, part);
    else
      substitute_columns(m, triangle, part);
  };
  if (split)
    parallel_chunks(x.columns, grain_for(static_cast<double>(m.rows * m.rows)), run);
  else
    run(0, x.columns);
}

}  // namespace

template <class T>
void Products<T>::subtract(View<T> a, View<T> b, View<T> c) {
  if (c.column_step != 1) {
    subtract(b.transposed(), a.transposed(), c.transposed());
    return;
  }
  if (c.rows == 0 || c.columns == 0 || a.columns == 0) return;
  if (measures()) {
    const Bytes bytes = split_ ? parallel_gemm_workspace<T>(c.rows, c.columns, a.columns, threads_)
                               : gemm_workspace<T>(c.rows, c.columns, a.columns);
    most_ = std::max(most_, bytes);
    return;
  }
  const bool ta = a.column_step != 1;
  const bool tb = b.column_step != 1;
  const Gemm<T> product{.transpose_a = ta,
                        .transpose_b = tb,
                        .m = c.rows,
                        .n = c.columns,
                        .k = a.columns,
                        .a = a.data,
                        .lda = ta ? a.column_step : a.row_step,
                        .b = b.data,
                        .ldb = tb ? b.column_step : b.row_step,
                        .c = c.data,
                        .ldc = c.row_step,
                        .accumulate = true,
                        .alpha = -1};
  if (split_)
    gemm(product, workspace_);
  else
    gemm_serial(product, workspace_);
}

template <class T>
void solve_triangular(View<T> m, Triangle triangle, View<T> x, Products<T>& products) {
  const std::int64_t n = m.rows;
  if (n == 0 || x.columns == 0) return;
  if (n <= smallest) {
    if (!products.measures()) substitute(m, triangle, x, products.split());
    return;
  }
  const std::int64_t half = half_of(n);
  const View<T> top = x.block(0, 0, half, x.columns);
  const View<T> bottom = x.block(half, 0, n - half, x.columns);
  const View<T> first = m.block(0, 0, half, half);
  const View<T> last = m.block(half, half, n - half, n - half);
  if (triangle.upper) {
    solve_triangular(last, triangle, bottom, products);
    products.subtract(m.block(0, half, half, n - half), bottom, top);
    solve_triangular(first, triangle, top, products);
  } else {
    solve_triangular(first, triangle, top, products);
    products.subtract(m.block(half, 0, n - half, half), top, bottom);
    solve_triangular(last, triangle, bottom, products);
  }
}

template <class T>
std::int64_t factor_cholesky(View<T> a, Products<T>& products) {
  const std::int64_t n = a.rows;
  if (n <= smallest) {
    if (products.measures() || a.data == nullptr) return -1;
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = j; i < n; ++i) {
        T sum = a(i, j);
        for (std::int64_t l = 0; l < j; ++l) sum -= a(i, l) * a(j, l);
        if (i == j && !(sum > 0)) return j;
        a(i, j) = i == j ? std::sqrt(sum) : sum / a(j, j);
      }
    }
    return -1;
  }
  const std::int64_t half = half_of(n);
  const View<T> first = a.block(0, 0, half, half);
  const View<T> below = a.block(half, 0, n - half, half);
  const std::int64_t failed = factor_cholesky(first, products);
  if (failed >= 0) return failed;
  solve_triangular(first, {}, below.transposed(), products);
  for (std::int64_t begin = 0; begin < n - half; begin += symmetric_block) {
    const std::int64_t height = std::min(symmetric_block, n - half - begin);
    const std::int64_t width = begin + height;
    products.subtract(below.block(begin, 0, height, half),
                      below.block(0, 0, width, half).transposed(),
                      a.block(half + begin, half, height, width));
  }
  const std::int64_t later = factor_cholesky(a.block(half, half, n - half, n - half), products);
  return later < 0 ? -1 : half + later;
}

namespace {

template <class T>
void exchange_rows(View<T> a, const std::int64_t* exchanges, std::int64_t count) {
  if (a.data == nullptr) return;
  for (std::int64_t i = 0; i < count; ++i) {
    if (exchanges[i] != i) std::swap_ranges(&a(i, 0), &a(i, 0) + a.columns, &a(exchanges[i], 0));
  }
}

/// Elimination in a panel with few columns.
template <class T>
std::int64_t eliminate(View<T> a, std::int64_t* exchanges) {
  std::int64_t failed = -1;
  for (std::int64_t j = 0; j < a.columns; ++j) {
    std::int64_t pivot = j;
    for (std::int64_t i = j + 1; i < a.rows; ++i) {
      if (std::abs(a(i, j)) > std::abs(a(pivot, j))) pivot = i;
    }
    exchanges[j] = pivot;
    if (a(pivot, j) == T(0)) {
      if (failed < 0) failed = j;
      continue;
    }
    if (pivot != j) std::swap_ranges(&a(j, 0), &a(j, 0) + a.columns, &a(pivot, 0));
    const View<T> right = a.block(0, j + 1, a.rows, a.columns - j - 1);
    for (std::int64_t i = j + 1; i < a.rows; ++i) {
      a(i, j) /= a(j, j);
      row_of(right, i) -= a(i, j) * row_of(right, j);
    }
  }
  return failed;
}

/// Factors a panel with at least as many rows as columns.
template <class T>
std::int64_t factor_panel(View<T> a, std::int64_t* exchanges, Products<T>& products) {
  const std::int64_t n = a.columns;
  const bool measures = products.measures() || exchanges == nullptr;
  if (n <= smallest) {
    return measures || a.data == nullptr ? -1 : eliminate(a, exchanges);
  }
  const std::int64_t half = half_of(n);
  const View<T> left = a.block(0, 0, a.rows, half);
  const View<T> right = a.block(0, half, a.rows, n - half);
  const View<T> corner = right.block(0, 0, half, n - half);
  const View<T> rest = right.block(half, 0, a.rows - half, n - half);
  const std::int64_t failed = factor_panel(left, exchanges, products);
  if (!measures) exchange_rows(right, exchanges, half);
  solve_triangular(left.block(0, 0, half, half), {.unit = true}, corner, products);
  products.subtract(left.block(half, 0, a.rows - half, half), corner, rest);
  std::int64_t* const exchanged = measures ? nullptr : exchanges + half;
  const std::int64_t later = factor_panel(rest, exchanged, products);
  if (!measures) {
    exchange_rows(left.block(half, 0, a.rows - half, half), exchanged, n - half);
    for (std::int64_t i = half; i < n; ++i) exchanges[i] += half;
  }
  if (failed >= 0) return failed;
  return later < 0 ? -1 : half + later;
}

}  // namespace

template <class T>
std::int64_t factor_lu(View<T> a, std::int64_t* exchanges, Products<T>& products) {
  return factor_panel(a, exchanges, products);
}

template class Products<float>;
template class Products<double>;
template void solve_triangular(View<float>, Triangle, View<float>, Products<float>&);
template void solve_triangular(View<double>, Triangle, View<double>, Products<double>&);
template std::int64_t factor_cholesky(View<float>, Products<float>&);
template std::int64_t factor_cholesky(View<double>, Products<double>&);
template std::int64_t factor_lu(View<float>, std::int64_t*, Products<float>&);
template std::int64_t factor_lu(View<double>, std::int64_t*, Products<double>&);

}  // namespace palimpsest
