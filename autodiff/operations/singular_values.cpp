#include "autodiff/operations/singular_values.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace palimpsest {
namespace {

double inner_product(const double* a, const double* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

void rotate_columns(double* a, double* b, std::int64_t n, double cosine, double sine) {
  for (std::int64_t i = 0; i < n; ++i) {
    const double x = a[i];
    a[i] = cosine * x - sine * b[i];
    b[i] = sine * x + cosine * b[i];
  }
}

/// Replaces column j by a unit vector orthogonal to the columns before it.
void complete(double* columns, std::int64_t m, std::int64_t j) {
  double* const column = columns + j * m;
  std::int64_t farthest = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t i = 0; i < m; ++i) {
    double covered = 0;
    for (std::int64_t k = 0; k < j; ++k) covered += columns[k * m + i] * columns[k * m + i];
    if (covered < least) least = covered, farthest = i;
  }
  std::fill_n(column, m, 0.0);
  column[farthest] = 1;
  for (int pass = 0; pass < 2; ++pass) {
    for (std::int64_t k = 0; k < j; ++k) {
      const double along = inner_product(column, columns + k * m, m);
      for (std::int64_t i = 0; i < m; ++i) column[i] -= along * columns[k * m + i];
    }
    const double length = std::sqrt(inner_product(column, column, m));
    for (std::int64_t i = 0; i < m; ++i) column[i] /= length;
  }
}

/// Rotates all pairs of columns once. Returns whether all were orthogonal.
bool rotate_pairs(double* columns, double* right, std::int64_t m, std::int64_t n) {
  constexpr double tolerance = 1e-15;
  bool orthogonal = true;
  for (std::int64_t p = 0; p < n; ++p) {
    for (std::int64_t q = p + 1; q < n; ++q) {
      double* const a = columns + p * m;
      double* const b = columns + q * m;
      const double aa = inner_product(a, a, m);
      const double bb = inner_product(b, b, m);
      const double ab = inner_product(a, b, m);
      if (!(std::abs(ab) > tolerance * std::sqrt(aa) * std::sqrt(bb))) continue;
      orthogonal = false;
      const double slope = (bb - aa) / (2 * ab);
      const double tangent = std::copysign(1 / (std::abs(slope) + std::hypot(1.0, slope)), slope);
      const double cosine = 1 / std::hypot(1.0, tangent);
      rotate_columns(a, b, m, cosine, cosine * tangent);
      rotate_columns(right + p * n, right + q * n, n, cosine, cosine * tangent);
    }
  }
  return orthogonal;
}

}  // namespace

Bytes SingularValues::bytes(std::int64_t m, std::int64_t n) {
  return std::min(m, n) * (m + n + 1) * Bytes{sizeof(double)};
}

SingularValues::SingularValues(std::byte* space, std::int64_t m, std::int64_t n)
    : u(reinterpret_cast<double*>(space)),
      values(u + std::min(m, n) * m),
      v(values + std::min(m, n)) {}

bool SingularValues::rotate(double* columns, double* right, std::int64_t m, std::int64_t n) const {
  double largest = 0;
  for (std::int64_t i = 0; i < m * n; ++i) {
    if (!std::isfinite(columns[i])) return false;
    largest = std::max(largest, std::abs(columns[i]));
  }
  const double scale = largest > 0 ? largest : 1;
  for (std::int64_t i = 0; i < m * n; ++i) columns[i] /= scale;
  std::fill_n(right, n * n, 0.0);
  for (std::int64_t j = 0; j < n; ++j) right[j * n + j] = 1;
  int sweeps = 0;
  while (!rotate_pairs(columns, right, m, n)) {
    if (++sweeps == 60) return false;
  }
  for (std::int64_t j = 0; j < n; ++j) {
    values[j] = std::sqrt(inner_product(columns + j * m, columns + j * m, m));
  }
  for (std::int64_t j = 0; j < n; ++j) {  // selection sort, which exchanges each column once
    const std::int64_t top = std::max_element(values + j, values + n) - values;
    if (top != j) {
      std::swap(values[j], values[top]);
      std::swap_ranges(columns + j * m, columns + (j + 1) * m, columns + top * m);
      std::swap_ranges(right + j * n, right + (j + 1) * n, right + top * n);
    }
    double* const column = columns + j * m;
    if (values[j] > 0) {
      for (std::int64_t i = 0; i < m; ++i) column[i] /= values[j];
    } else {
      complete(columns, m, j);
    }
    values[j] *= scale;
  }
  return true;
}

}  // namespace palimpsest
