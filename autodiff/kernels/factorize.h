#pragma once

#include <cstdint>
#include <span>

#include "autodiff/kernels/gemm.h"

namespace palimpsest {

/// A matrix in somebody's memory: element (i, j) lies at `data[i·row_step + j·column_step]`, and
/// one of the steps is 1.
template <class T>
struct View {
  T* data;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t row_step;
  std::int64_t column_step = 1;

  T& operator()(std::int64_t i, std::int64_t j) const {
    return data[i * row_step + j * column_step];
  }
  View block(std::int64_t i, std::int64_t j, std::int64_t height, std::int64_t width) const {
    T* corner = data == nullptr ? nullptr : data + i * row_step + j * column_step;
    return {corner, height, width, row_step, column_step};
  }
  View transposed() const { return {data, columns, rows, column_step, row_step}; }
};

/// The products a factorisation spends its time in: on the calling thread, or each split over the
/// arena. Either knows the workspace, or measures what it would take while nothing is touched.
template <class T>
class Products {
 public:
  Products(bool split, std::span<std::byte> workspace) : split_(split), workspace_(workspace) {}
  /// Measures, for `threads` threads.
  Products(bool split, int threads) : split_(split), threads_(threads) {}

  bool measures() const { return threads_ > 0; }
  bool split() const { return split_; }
  Bytes workspace_bytes() const { return most_; }
  /// C −= A·B.
  void subtract(View<T> a, View<T> b, View<T> c);

 private:
  bool split_;
  int threads_ = 0;
  Bytes most_ = 0;
  std::span<std::byte> workspace_;
};

/// Which half of a matrix is read, and whether its diagonal is taken for ones.
struct Triangle {
  bool upper = false;
  bool unit = false;
};

/// X ← M⁻¹·X for the triangular matrix M. A zero on the diagonal gives infinities; look before.
template <class T>
void solve_triangular(View<T> m, Triangle triangle, View<T> x, Products<T>& products);

/// The lower triangle of a becomes L with L·Lᵀ = a; what is above the diagonal is not read and is
/// overwritten with anything. Returns the first pivot that is not positive, or −1.
template <class T>
std::int64_t factor_cholesky(View<T> a, Products<T>& products);

/// a becomes L (below the diagonal, which is 1) and U of a with its rows exchanged: row i with row
/// `exchanges[i]` for i = 0, 1, … Partial pivoting. Returns the first pivot that is zero, after
/// factoring the rest as far as it goes, or −1.
template <class T>
std::int64_t factor_lu(View<T> a, std::int64_t* exchanges, Products<T>& products);

}  // namespace palimpsest
