#pragma once

#include <cstdint>

#include "autodiff/bytes.h"

namespace palimpsest {

/// The singular value decomposition of a matrix of f64, by rows: a = u·diag(values)·vᵀ, with the
/// values in descending order. Let k = min(m, n) for m rows and n columns.
struct SingularValues {
  double* u;       ///< by columns: (k, m)
  double* values;  ///< (k)
  double* v;       ///< by columns: (k, n)

  static Bytes bytes(std::int64_t m, std::int64_t n);
  /// The parts in memory of `bytes`.
  SingularValues(std::byte* space, std::int64_t m, std::int64_t n);

  /// One-sided Jacobi rotations (Hestenes, 1958): small singular values have a small relative
  /// error. `at(i, j)` returns the elements. Returns false if elements are not finite or the
  /// rotations do not converge.
  template <class F>
  bool factor(std::int64_t m, std::int64_t n, F at) {
    const bool tall = m >= n;
    double* const columns = tall ? u : v;
    for (std::int64_t j = 0; j < (tall ? n : m); ++j) {
      for (std::int64_t i = 0; i < (tall ? m : n); ++i) {
        columns[j * (tall ? m : n) + i] = tall ? at(i, j) : at(j, i);
      }
    }
    return tall ? rotate(u, v, m, n) : rotate(v, u, n, m);
  }

 private:
  /// Factors the matrix whose n columns of m ≥ n elements are in `columns`, and leaves the left
  /// vectors there.
  bool rotate(double* columns, double* right, std::int64_t m, std::int64_t n) const;
};

}  // namespace palimpsest
