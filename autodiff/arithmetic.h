#pragma once

#include <cstdint>

#include "autodiff/export.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// One arithmetic operation on floating-point numbers x and y: x + y, x − y, y − x or x·y. Two of
/// them can be fused into one pass; each is rounded on its own.
enum class ArithmeticStep : std::uint8_t { none, add, subtract, subtract_from, multiply };

}  // namespace palimpsest
