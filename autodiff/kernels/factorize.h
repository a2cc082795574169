#pragma once

#include <cstdint>
#include <span>

#include "autodiff/kernels/gemm.h"

namespace palimpsest {

/// A non-owning view of a matrix. Element (i, j) is at `data[i·row_step + j·column_step]`; one of
/// the steps is 1.
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

/// The matrix products of a factorization, either on the calling thread or each split over the
/// arena. In measuring mode it computes nothing and only determines the workspace needed.
template <class T>
class Products {
 public:
  Products(bool split, std::span<std::byte> workspace) : split_(split), workspace_(workspace) {}
  /// Measuring mode, for `threads` threads.
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

/// Which triangle of a matrix is read, and whether its diagonal is taken as ones.
struct Triangle {
  bool upper = false;
  bool unit = false;
};

/// X ← M⁻¹·X for a triangular matrix M. A zero on the diagonal gives infinities; check before.
template <class T>
void solve_triangular(View<T> m, Triangle triangle, View<T> x, Products<T>& products);

/// Replaces the lower triangle of a by L with L·Lᵀ = a. The elements above the diagonal are not
/// read and their values afterwards are unspecified. Returns the first pivot that is not positive,
/// or −1.
template <class T>
std::int64_t factor_cholesky(View<T> a, Products<T>& products);

/// Replaces a by L (below the diagonal of ones) and U of a with exchanged rows: row i is exchanged
/// with row `exchanges[i]` for i = 0, 1, … Uses partial pivoting. Returns the first pivot that is
/// zero, or −1. After a zero pivot it factors the rest as far as possible.
template <class T>
std::int64_t factor_lu(View<T> a, std::int64_t* exchanges, Products<T>& products);

}  // namespace palimpsest
