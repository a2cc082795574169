#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "autodiff/dtype.h"

/// Dtypes that kernels read in place and compute with in a wider one, piece by piece.
namespace palimpsest {

/// True for bool, i16, i8 and u8.
constexpr bool is_narrow_or_bool(DType dtype) {
  return dtype == DType::boolean || is_narrow_integer(dtype);
}

/// Calls `f(T{})` for i16, i8 and u8. Throws `InternalError` for other dtypes.
template <class F>
decltype(auto) visit_narrow_integer(DType dtype, F&& f) {
  if (dtype == DType::i16) return f(std::int16_t{});
  if (dtype == DType::i8) return f(std::int8_t{});
  if (dtype == DType::u8) return f(std::uint8_t{});
  throw InternalError("a narrow kernel was called with another dtype");
}
/// Likewise, and for bool.
template <class F>
decltype(auto) visit_narrow(DType dtype, F&& f) {
  return dtype == DType::boolean ? f(bool{}) : visit_narrow_integer(dtype, f);
}

/// Elements that are widened at once.
inline constexpr std::int64_t narrow_piece = 2048;

/// Widens n elements.
template <class From, class T>
void widen(const From* x, std::int64_t n, T* to) {
  std::transform(x, x + n, to, [](From element) { return static_cast<T>(element); });
}

}  // namespace palimpsest
