#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "autodiff/bytes.h"
#include "autodiff/dtype.h"
#include "autodiff/export.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Precision at which the numbers of a snapshot are kept. Floating-point numbers of 64 and 32 bits
/// can be kept in half the bits. Integers, bool and numbers of 16 bits are always kept exactly.
///
/// | codec     | from | to   | relative error, at most | absolute error of smaller ones, at most |
/// |-----------|------|------|-------------------------|-----------------------------------------|
/// | half      | f64  | f32  | 2^-24                   | 2^-150 below 2^-126                     |
/// |           | f32  | bf16 | 2^-8                    | 2^-134 below 2^-126                     |
/// | half_f16  | f64  | f32  | 2^-24                   | 2^-150 below 2^-126                     |
/// |           | f32  | f16  | 2^-11                   | 2^-25 below 2^-14                       |
///
/// Rounding is to nearest, ties to even. NaN, infinities and the signs of zeros are kept. Encoding
/// is idempotent: decoded numbers are encoded as the same bytes. A finite number beyond the range
/// of the narrow dtype throws `ArgumentError`.
enum class Codec : std::uint8_t {
  exact,     ///< the bytes as they are
  half,      ///< half the bytes, full range: f32 as bf16
  half_f16,  ///< half the bytes, more digits: f32 as f16, whose range ends at 65,504
};

/// `exact`, `half` or `half_f16`.
std::string_view name_of(Codec codec);

/// The dtype that numbers of `dtype` are kept in.
DType stored_dtype(DType dtype, Codec codec);

/// Bytes that `bytes` of elements of `dtype` take when they are kept.
Bytes stored_bytes(Bytes bytes, DType dtype, Codec codec);

/// Encodes the elements in `from` into `to`, which has `stored_bytes`. In parallel. Throws
/// `ArgumentError` for a finite number that would become infinite, and for a `to` of another size.
void encode(std::span<const std::byte> from, DType dtype, Codec codec, std::span<std::byte> to);

/// Decodes `from` into the elements of `dtype` in `to`. In parallel. Throws `ArgumentError` for a
/// `to` of another size.
void decode(std::span<const std::byte> from, DType dtype, Codec codec, std::span<std::byte> to);

}  // namespace palimpsest
