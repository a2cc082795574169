#pragma once

#include <span>

#include "autodiff/var.h"

namespace palimpsest {

/// Throws `ArgumentError` if derivatives of `ys` with respect to `xs`, which are values of one
/// tape, would miss a path outside of the function that is being recorded. In the body of a loop,
/// every captured value is a leaf. So it does not show that one captured value depends on another.
void require_whole_paths(std::span<const Var> ys, std::span<const Var> xs, const Where& where);

}  // namespace palimpsest
