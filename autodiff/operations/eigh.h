#pragma once

#include <cstdint>

#include "autodiff/var.h"

namespace palimpsest {

enum class Spectrum : std::uint8_t { eigenvalues, singular_values };

/// 1/(wⱼ − wᵢ) at (i, j) and 0 on the diagonal. w (…, n) are the sorted eigenvalues, or the squares
/// of the sorted singular values, of an operation recorded at `where`. Throws `ArgumentError` when
/// computed if two of them are equal.
Var inverse_gaps(const Var& w, Spectrum spectrum, const Where& where);

}  // namespace palimpsest
