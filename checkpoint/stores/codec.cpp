#include "checkpoint/stores/codec.h"

#include <array>
#include <cmath>
#include <cstring>
#include <sstream>
#include <string>
#include <type_traits>

#include "autodiff/convert.h"
#include "autodiff/parallel.h"

namespace palimpsest {
namespace {

/// Elements as an operand of `convert`, which only reads its first argument.
Operand elements(const std::byte* data, DType dtype, std::int64_t first, std::int64_t last) {
  return {.data = const_cast<std::byte*>(data) + first * size_of(dtype),
          .type = {.shape = {last - first}, .dtype = dtype}};
}

/// Calls `f` on ranges of elements in parallel. Throws when the sizes of `from` and `to` do not
/// match.
template <class F>
void in_parallel(std::span<const std::byte> from, DType from_dtype, std::span<std::byte> to,
                 DType to_dtype, F f) {
  const auto count = static_cast<std::int64_t>(from.size()) / size_of(from_dtype);
  if (static_cast<Bytes>(from.size()) != count * size_of(from_dtype) ||
      static_cast<Bytes>(to.size()) != count * size_of(to_dtype)) {
    throw ArgumentError("[snapshot] " + std::to_string(from.size()) + " bytes of " +
                        std::string(name_of(from_dtype)) + " do not correspond to " +
                        std::to_string(to.size()) + " bytes of " + std::string(name_of(to_dtype)) +
                        "; size the buffers with stored_bytes");
  }
  parallel_chunks(count, grain_for(1), f);
}

template <class T>
bool is_infinite(T element) {
  if constexpr (std::is_same_v<T, float>) {
    return (std::bit_cast<std::uint32_t>(element) & 0x7fffffffu) == 0x7f800000u;
  } else {
    constexpr unsigned infinity = std::is_same_v<T, BFloat16> ? 0x7f80u : 0x7c00u;
    return (element.bits & 0x7fffu) == infinity;
  }
}

/// Throws when a finite element has become infinite.
template <class From, class To>
void check_finite(const From* from, const To* to, std::int64_t count) {
  std::uint16_t any = 0;  // this fast test comes first, in a form that compilers vectorise
  for (std::int64_t i = 0; i < count; ++i) any |= is_infinite(to[i]) ? 1 : 0;
  if (any == 0) return;
  for (std::int64_t i = 0; i < count; ++i) {
    if (!is_infinite(to[i]) || !std::isfinite(from[i])) continue;
    const DType dtype = dtype_of<To>();
    std::ostringstream number;
    number << from[i];
    throw ArgumentError("[snapshot] " + number.str() + " is too large for " +
                        std::string(name_of(dtype)) + ", the dtype of this stored state; use " +
                        (dtype == DType::f16 ? "Codec::half or " : "") + "Codec::exact");
  }
}

}  // namespace

std::string_view name_of(Codec codec) {
  static constexpr std::array<std::string_view, 3> names{"exact", "half", "half_f16"};
  return names[static_cast<std::size_t>(codec)];
}

DType stored_dtype(DType dtype, Codec codec) {
  if (codec == Codec::exact) return dtype;
  if (dtype == DType::f64) return DType::f32;
  if (dtype == DType::f32) return codec == Codec::half ? DType::bf16 : DType::f16;
  return dtype;
}

Bytes stored_bytes(Bytes bytes, DType dtype, Codec codec) {
  return bytes / size_of(dtype) * size_of(stored_dtype(dtype, codec));
}

void encode(std::span<const std::byte> from, DType dtype, Codec codec, std::span<std::byte> to) {
  const DType stored = stored_dtype(dtype, codec);
  in_parallel(from, dtype, to, stored, [&](std::int64_t first, std::int64_t last) {
    const Operand source = elements(from.data(), dtype, first, last);
    const Operand target = elements(to.data(), stored, first, last);
    if (stored == dtype) {
      std::memcpy(target.data, source.data,
                  static_cast<std::size_t>((last - first) * size_of(dtype)));
      return;
    }
    convert(source, target);
    const auto check = [&]<class From, class To>(From, To) {
      check_finite(source.as<From>(), target.as<To>(), last - first);
    };
    if (stored == DType::f32) check(double{}, float{});
    if (stored == DType::bf16) check(float{}, BFloat16{});
    if (stored == DType::f16) check(float{}, Float16{});
  });
}

void decode(std::span<const std::byte> from, DType dtype, Codec codec, std::span<std::byte> to) {
  const DType stored = stored_dtype(dtype, codec);
  in_parallel(from, stored, to, dtype, [&](std::int64_t first, std::int64_t last) {
    const Operand source = elements(from.data(), stored, first, last);
    const Operand target = elements(to.data(), dtype, first, last);
    if (stored == dtype) {
      std::memcpy(target.data, source.data,
                  static_cast<std::size_t>((last - first) * size_of(dtype)));
    } else {
      convert(source, target);
    }
  });
}

}  // namespace palimpsest
