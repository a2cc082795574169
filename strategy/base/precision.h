#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "autodiff/dtype.h"
#include "autodiff/export.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// The floating dtypes that a program is computed in, whatever it was recorded in.
enum class PrecisionKind : std::uint8_t {
  full,    ///< f64
  single,  ///< f32
  half,    ///< `Precision::half`
  mixed,   ///< f32, and `Precision::half` for products and what is computed from them
};

/// `full`, `single` and so on.
std::string_view name_of(PrecisionKind kind);
/// The kind with that name. Throws `ArgumentError` that lists the known names.
PrecisionKind precision_kind_named(std::string_view name);

/// A precision to compute in (docs/precision.md says how exact each is). Each operation defines its
/// behaviour in mixed precision (see `MixedPrecision`). Some things keep their recorded dtypes in
/// every precision: users' operations, casts, random numbers, and the arguments and results of
/// loops and checkpoints.
struct Precision {
  PrecisionKind kind = PrecisionKind::mixed;
  DType half = DType::bf16;  ///< bf16 or f16, for the kinds `half` and `mixed`

  /// The dtype of all floating values that are not narrow.
  DType wide() const;
  /// The dtype of products. Equals `wide()` unless the precision is mixed.
  DType narrow() const;
  /// Whether losses must be scaled (see `LossScaler`): in mixed f16. Not where everything is f16:
  /// the scale and the scaled loss would be f16 too, and soon be infinite.
  bool needs_scaling() const;
  /// Such as `mixed bf16`.
  std::string summary() const;

  bool operator==(const Precision&) const = default;
};

/// Throws `ArgumentError`, with `operation` in its message, when `half` is not a 16-bit floating
/// dtype.
void require_valid(const Precision& precision, std::string_view operation);

}  // namespace palimpsest
