#pragma once

#include <cstdint>

#include "autodiff/var.h"

namespace palimpsest {

enum class Spectrum : std::uint8_t { eigenvalues, singular_values };

/// How `gap_quotients` divides.
struct GapOptions {
  Spectrum spectrum = Spectrum::eigenvalues;
  /// Divides by wⱼ + wᵢ instead.
  bool by_sums = false;
  /// A quotient 0/0 is 0 where the numerator is at most `noise` times the sum of the scales i and
  /// j, and the denominator at most `close` times the largest value. Negative where 0/0 may have
  /// another limit.
  double noise = -1;
  double close = -1;

  bool operator==(const GapOptions&) const = default;
};

/// The matrix nᵢⱼ/(wⱼ − wᵢ), 0 on the diagonal. n is (…, n, n). w (…, n) holds sorted eigenvalues
/// or singular values. `scale` (…, n) holds the sizes of the terms whose rounding errors n has. The
/// operation that made w was recorded at `where`. When computed, throws `ArgumentError` if two of w
/// are equal and their numerator is not 0 within rounding. The derivatives have no 0/0.
Var gap_quotients(const Var& n, const Var& w, const Var& scale, const GapOptions& options,
                  const Where& where);

/// The scale for numerators that are made of the adjoint `dv` of vectors along `axis`.
Var gap_scale(const Var& dv, int axis, const Where& where);
/// Sets `noise` and `close` for the adjoint `dv` of vectors. The vectors have `size` elements, were
/// made together with `values`, and were computed in `wide`. Both numbers stay negative unless dv
/// is known to depend on the matrix by its vectors only. Where the loss depends on it in another
/// way too, as v·f(w)·vᵀ does, the limit may be another. A loss that is linear in the vectors has
/// no dv that is 0 for every choice of them.
void set_tolerances(GapOptions& options, const Var& dv, const Var& values, DType wide,
                    std::int64_t size);

}  // namespace palimpsest
