#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "autodiff/dtype.h"

namespace palimpsest {

/// In which floating dtypes a program is computed, whichever it was recorded in.
enum class PrecisionKind : std::uint8_t {
  full,    ///< f64
  single,  ///< f32
  half,    ///< `Precision::half`
  mixed,   ///< f32 and, for products and what is made of them, `Precision::half`
};

/// `full`, `single` and so on.
std::string_view name_of(PrecisionKind kind);
/// The one of that name. Throws `ArgumentError` listing the names there are.
PrecisionKind precision_kind_named(std::string_view name);

/// A precision to compute in (docs/precision.md says how exact each is). Operations say themselves
/// what they do in a mixed one (see `MixedPrecision`); users' operations, casts, random numbers and
/// what loops and checkpoints are given and return stay as they were recorded in all of them.
struct Precision {
  PrecisionKind kind = PrecisionKind::mixed;
  DType half = DType::bf16;  ///< bf16 or f16; of the kinds `half` and `mixed`

  /// The dtype of everything floating that is not narrow.
  DType wide() const;
  /// The dtype of products; but in mixed precision that is the wide one.
  DType narrow() const;
  /// Whether losses are to be scaled (see `LossScaler`): in mixed f16. Where everything is f16, so
  /// would be the scale and the scaled loss, which then soon are infinite.
  bool needs_scaling() const;
  /// `mixed bf16`, and so on.
  std::string summary() const;

  bool operator==(const Precision&) const = default;
};

/// Throws `ArgumentError` in the name of `operation` when `half` is no 16-bit floating dtype.
void require_valid(const Precision& precision, std::string_view operation);

}  // namespace palimpsest
