#pragma once

#include <cstdint>

namespace palimpsest {

/// A step of arithmetic on floating-point numbers x and y: x + y, x − y, y − x or x·y. Two of them
/// can be done in one pass, each rounded.
enum class ArithmeticStep : std::uint8_t { none, add, subtract, subtract_from, multiply };

}  // namespace palimpsest
