#pragma once

#include <algorithm>
#include <span>

#include "autodiff/operations/factor_batch.h"

namespace palimpsest {

/// A matrix's LU factors: n×n elements, then the row exchanges.
template <class T>
struct Factors {
  View<T> lu;
  std::int64_t* exchanges;

  static Bytes bytes(std::int64_t n) { return aligned(n * n * size_of(dtype_of<T>())) + n * 8; }
  Factors(std::span<std::byte> space, const T* a, std::int64_t n)
      : lu{reinterpret_cast<T*>(space.data()), n, n, n},
        exchanges(reinterpret_cast<std::int64_t*>(space.data() +
                                                  aligned(n * n * static_cast<Bytes>(sizeof(T))))) {
    std::copy_n(a, n * n, lu.data);
  }
};

/// x ← op(a)⁻¹·x, given the factors of a.
template <class T>
void solve_factored(const Factors<T>& factors, bool transpose, View<T> x, Products<T>& products) {
  const auto exchange = [&](std::int64_t i) {
    if (factors.exchanges[i] == i) return;
    std::swap_ranges(&x(i, 0), &x(i, 0) + x.columns, &x(factors.exchanges[i], 0));
  };
  if (transpose) {
    solve_triangular(factors.lu.transposed(), {}, x, products);
    solve_triangular(factors.lu.transposed(), {.upper = true, .unit = true}, x, products);
    for (std::int64_t i = x.rows; i-- > 0;) exchange(i);
  } else {
    for (std::int64_t i = 0; i < x.rows; ++i) exchange(i);
    solve_triangular(factors.lu, {.unit = true}, x, products);
    solve_triangular(factors.lu, {.upper = true}, x, products);
  }
}

/// The gradient of the k-th derivative of det a along k directions, which is multilinear in them.
/// `operands` are a and the directions, all of a's type. Without directions: the cofactors of a.
Var record_cofactors(std::span<const Var> operands, const Where& where);

/// a⁻¹, or a⁻ᵀ.
Var record_inverse(const Var& a, bool transpose, const Where& where);

}  // namespace palimpsest
