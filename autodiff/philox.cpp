#include "autodiff/philox.h"

#include <Random123/philox.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include "autodiff/error.h"
#include "autodiff/parallel.h"

namespace palimpsest {
namespace {

using Generator = r123::Philox4x32;

Generator::ctr_type block(const RandomStream& stream, std::uint64_t index) {
  const Generator::ctr_type counter = {{static_cast<std::uint32_t>(index),
                                        static_cast<std::uint32_t>(index >> 32), stream.node,
                                        stream.generation}};
  const Generator::key_type key = {
      {static_cast<std::uint32_t>(stream.seed), static_cast<std::uint32_t>(stream.seed >> 32)}};
  return Generator()(counter, key);
}

/// How many numbers one block of 128 bits provides.
template <class T>
constexpr std::int64_t per_block = sizeof(T) == 8 ? 2 : 4;

template <class T>
T unit(const Generator::ctr_type& bits, std::int64_t lane) {
  if constexpr (sizeof(T) == 8) {
    const auto at = static_cast<std::size_t>(2 * lane);
    const std::uint64_t word = (std::uint64_t{bits[at]} << 32) | bits[at + 1];
    return static_cast<double>(word >> 11) * 0x1p-53;
  } else {
    return static_cast<float>(bits[static_cast<std::size_t>(lane)] >> 8) * 0x1p-24f;
  }
}

/// Calls `fill(index of block, first element, elements)` for every block.
template <class T, class Fill>
void for_blocks(std::int64_t n, Fill fill) {
  constexpr std::int64_t width = per_block<T>;
  parallel_chunks((n + width - 1) / width, 4096, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      fill(static_cast<std::uint64_t>(b), b * width, std::min(width, n - b * width));
    }
  });
}

template <class T>
void uniform(const RandomStream& stream, T* out, std::int64_t n, std::int64_t start) {
  const auto skipped = static_cast<std::uint64_t>(start / per_block<T>);
  for_blocks<T>(n, [&](std::uint64_t index, std::int64_t first, std::int64_t count) {
    const auto bits = block(stream, skipped + index);
    for (std::int64_t lane = 0; lane < count; ++lane) out[first + lane] = unit<T>(bits, lane);
  });
}

template <class T>
void normal(const RandomStream& stream, T* out, std::int64_t n) {
  for_blocks<T>(n, [&](std::uint64_t index, std::int64_t first, std::int64_t count) {
    const auto bits = block(stream, index);
    for (std::int64_t pair = 0; pair < count; pair += 2) {
      const T radius = std::sqrt(T(-2) * std::log(T(1) - unit<T>(bits, pair)));
      const T angle = T(2) * std::numbers::pi_v<T> * unit<T>(bits, pair + 1);
      out[first + pair] = radius * std::cos(angle);
      if (pair + 1 < count) out[first + pair + 1] = radius * std::sin(angle);
    }
  });
}

/// y = min(offset + factor·y, most).
template <class T>
void scale_and_shift(T* y, std::int64_t n, double factor, double offset, double most) {
  parallel_chunks(n, grain_for(1), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      y[i] = static_cast<T>(std::min(offset + factor * static_cast<double>(y[i]), most));
    }
  });
}

/// The largest number of `dtype` below `high`, or `low` if that is larger.
double last_of(double low, double high, DType dtype) {
  return visit(dtype, [&]<class E>(E) {
    E last = convert_element<E>(high);
    if (convert_element<double>(last) >= high) {
      if constexpr (std::is_floating_point_v<E>) {
        last = std::nextafter(last, -std::numeric_limits<E>::infinity());
      } else if constexpr (std::is_class_v<E>) {
        const std::uint16_t bits = last.bits;  // a sign, then ordered magnitudes
        last.bits = (bits & 0x7fff) == 0 ? 0x8001 : bits < 0x8000 ? bits - 1 : bits + 1;
      }
    }
    return std::max(low, convert_element<double>(last));
  });
}

template <class T>
void between(const RandomStream& stream, T* out, std::int64_t n, double low, double high,
             DType dtype) {
  fill_uniform(stream, out, n);
  scale_and_shift(out, n, high - low, low, last_of(low, high, dtype));
}

template <class T>
void any_normal(const RandomStream& stream, T* out, std::int64_t n, double mean, double deviation) {
  normal(stream, out, n);
  if (mean == 0 && deviation == 1) return;
  scale_and_shift(out, n, deviation, mean, std::numeric_limits<double>::infinity());
}

void require_range(std::int64_t n, std::int64_t first) {
  if (n >= 0 && first >= 0 && first % 4 == 0) return;
  throw ArgumentError("[fill_uniform] cannot draw " + std::to_string(n) + " numbers from number " +
                      std::to_string(first) +
                      " on; give 0 or more numbers, and a first one that is a multiple of 4");
}

}  // namespace

std::uint64_t seed_of(const RandomStream& stream) {
  const auto bits = block(stream, 0);
  return std::uint64_t{bits[0]} << 32 | bits[1];
}

void fill_uniform(const RandomStream& s, float* out, std::int64_t n, std::int64_t first) {
  require_range(n, first);
  uniform(s, out, n, first);
}
void fill_uniform(const RandomStream& s, double* out, std::int64_t n, std::int64_t first) {
  require_range(n, first);
  uniform(s, out, n, first);
}
bool is_interval(double low, double high) { return low < high && std::isfinite(high - low); }

void fill_between(const RandomStream& s, float* out, std::int64_t n, double low, double high,
                  DType dtype) {
  between(s, out, n, low, high, dtype);
}
void fill_between(const RandomStream& s, double* out, std::int64_t n, double low, double high,
                  DType dtype) {
  between(s, out, n, low, high, dtype);
}
void fill_normal(const RandomStream& s, float* out, std::int64_t n, double mean, double deviation) {
  any_normal(s, out, n, mean, deviation);
}
void fill_normal(const RandomStream& s, double* out, std::int64_t n, double mean,
                 double deviation) {
  any_normal(s, out, n, mean, deviation);
}

}  // namespace palimpsest
