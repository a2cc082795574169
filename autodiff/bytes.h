#pragma once

#include <cstdint>
#include <string>

#include "autodiff/export.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// A number of bytes.
using Bytes = std::int64_t;

inline namespace literals {
constexpr Bytes operator""_B(unsigned long long n) { return static_cast<Bytes>(n); }
constexpr Bytes operator""_KiB(unsigned long long n) { return static_cast<Bytes>(n << 10); }
constexpr Bytes operator""_MiB(unsigned long long n) { return static_cast<Bytes>(n << 20); }
constexpr Bytes operator""_GiB(unsigned long long n) { return static_cast<Bytes>(n << 30); }
}  // namespace literals

/// `n` with a binary unit and three digits, as in `1.50 MiB`; the exact count below 1 KiB.
std::string format_bytes(Bytes n);

}  // namespace palimpsest
