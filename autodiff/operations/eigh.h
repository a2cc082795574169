#pragma once

#include <cstdint>

#include "autodiff/var.h"

namespace palimpsest {

enum class Spectrum : std::uint8_t { eigenvalues, singular_values };

/// 1/(wⱼ − wᵢ) at (i, j) and 0 on the diagonal. w (…, n) are sorted eigenvalues, or the squares of
/// sorted singular values. The operation that made them was recorded at `where`. When computed,
/// throws `ArgumentError` if two of them are equal.
Var inverse_gaps(const Var& w, Spectrum spectrum, const Where& where);

}  // namespace palimpsest
