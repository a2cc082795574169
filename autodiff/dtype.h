#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <limits>
#include <string_view>
#include <type_traits>

#include "autodiff/error.h"
#include "autodiff/export.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Element types; `boolean` is called `bool` in texts and takes one byte. bf16, f16, i16, i8 and u8
/// are storage formats. Arithmetic on the floating ones is done in f32. Arithmetic on the integers
/// is done in i32 and its results are stored in the narrow type again, so they wrap around. In all
/// texts, 16-bit types are bf16 and f16.
enum class DType : std::uint8_t { f64, f32, bf16, f16, i64, i32, i16, i8, u8, boolean };

/// bfloat16: the upper half of an f32. Conversion rounds to nearest even.
struct BFloat16 {
  std::uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value);
  explicit operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
  bool operator==(const BFloat16&) const = default;
};

/// IEEE 754 binary16. Conversion rounds to nearest even.
struct Float16 {
  std::uint16_t bits = 0;
  Float16() = default;
  explicit Float16(float value);
  explicit operator float() const;
  bool operator==(const Float16&) const = default;
};

/// Bytes of one element.
constexpr std::int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
    case DType::f16:
    case DType::i16:
      return 2;
    case DType::i8:
    case DType::u8:
    case DType::boolean:
      return 1;
  }
  return 0;
}

/// `f32`, `bool` and so on.
std::string_view name_of(DType dtype);
/// Writes the name.
std::ostream& operator<<(std::ostream& stream, DType dtype);

constexpr bool is_floating(DType d) { return d <= DType::f16; }
constexpr bool is_half(DType d) { return d == DType::bf16 || d == DType::f16; }
constexpr bool is_integer(DType d) { return d >= DType::i64 && d <= DType::u8; }
/// The integers that are storage formats.
constexpr bool is_narrow_integer(DType d) { return d >= DType::i16 && d <= DType::u8; }

/// The dtype in which arithmetic on `dtype` is done: f32 for bf16 and f16, else `dtype` itself.
constexpr DType compute_dtype(DType dtype) { return is_half(dtype) ? DType::f32 : dtype; }

/// The promoted dtype of two operands. Floating beats integer, integer beats bool; then the wider
/// one wins. bf16 with f16 gives f32, and i8 with u8 gives i16.
DType promote(DType a, DType b);

/// The C++ types of elements, one for each DType.
template <class T>
concept Element =
    std::is_same_v<T, double> || std::is_same_v<T, float> || std::is_same_v<T, BFloat16> ||
    std::is_same_v<T, Float16> || std::is_same_v<T, std::int64_t> ||
    std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::int16_t> ||
    std::is_same_v<T, std::int8_t> || std::is_same_v<T, std::uint8_t> || std::is_same_v<T, bool>;

/// The DType of the C++ type `T`.
template <Element T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, double>) return DType::f64;
  if constexpr (std::is_same_v<T, float>) return DType::f32;
  if constexpr (std::is_same_v<T, BFloat16>) return DType::bf16;
  if constexpr (std::is_same_v<T, Float16>) return DType::f16;
  if constexpr (std::is_same_v<T, std::int64_t>) return DType::i64;
  if constexpr (std::is_same_v<T, std::int32_t>) return DType::i32;
  if constexpr (std::is_same_v<T, std::int16_t>) return DType::i16;
  if constexpr (std::is_same_v<T, std::int8_t>) return DType::i8;
  if constexpr (std::is_same_v<T, std::uint8_t>) return DType::u8;
  if constexpr (std::is_same_v<T, bool>) return DType::boolean;
}

/// Calls `f(T{})` with the C++ type of `dtype`.
template <class F>
decltype(auto) visit(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f64:
      return f(double{});
    case DType::f32:
      return f(float{});
    case DType::bf16:
      return f(BFloat16{});
    case DType::f16:
      return f(Float16{});
    case DType::i64:
      return f(std::int64_t{});
    case DType::i32:
      return f(std::int32_t{});
    case DType::i16:
      return f(std::int16_t{});
    case DType::i8:
      return f(std::int8_t{});
    case DType::u8:
      return f(std::uint8_t{});
    case DType::boolean:
      return f(bool{});
  }
  throw InternalError("unknown dtype");
}

/// Converts one element.
///
/// - Floating to integer truncates. Values out of range are clamped to the nearest limit; NaN
///   becomes 0.
/// - Any value except 0 converts to true.
/// - f64 is rounded to f32 before it is rounded to 16 bits.
template <class To, class From>
To convert_element(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_class_v<From>) {
    return convert_element<To>(static_cast<float>(value));
  } else if constexpr (std::is_class_v<To>) {
    return To(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From{};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // The lowest value is a power of two or 0, so it is exact, and so is the highest value plus
    // one.
    constexpr auto low = static_cast<From>(std::numeric_limits<To>::min());
    constexpr auto end = static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * 2;
    if (value >= low && value < end) return static_cast<To>(value);
    if (value != value) return To{};
    return value < low ? std::numeric_limits<To>::min() : std::numeric_limits<To>::max();
  } else {
    return static_cast<To>(value);
  }
}

/// Calls `f(double{})` or `f(float{})`. Throws `InternalError` for other dtypes.
template <class F>
decltype(auto) visit_floating(DType dtype, F&& f) {
  if (dtype == DType::f64) return f(double{});
  if (dtype == DType::f32) return f(float{});
  throw InternalError("a floating kernel was called with another dtype");
}

/// Calls `f(T{})` for f64, f32, i64 and i32, the dtypes that numbers are computed in.
template <class F>
decltype(auto) visit_numeric(DType dtype, F&& f) {
  if (dtype == DType::i64) return f(std::int64_t{});
  if (dtype == DType::i32) return f(std::int32_t{});
  return visit_floating(dtype, f);
}

}  // namespace palimpsest
