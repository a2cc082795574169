#include "autodiff/convert.h"

#include <bit>

#include "autodiff/parallel.h"

namespace palimpsest {
namespace {

template <class From, class To>
void convert_all(const From* from, To* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = convert_element<To>(from[i]);
}

// The rest gives the same bits as one by one, in a form that compilers make vectors of.

std::uint32_t select(bool condition, std::uint32_t yes, std::uint32_t no) {
  const std::uint32_t mask = 0u - std::uint32_t{condition};
  return (yes & mask) | (no & ~mask);
}

void convert_all(const float* from, BFloat16* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const auto word = std::bit_cast<std::uint32_t>(from[i]);
    const bool is_nan = (word & 0x7fffffffu) > 0x7f800000u;
    const std::uint32_t rounded = word + 0x7fffu + ((word >> 16) & 1u);
    to[i].bits = static_cast<std::uint16_t>((is_nan ? word | 0x400000u : rounded) >> 16);
  }
}

void convert_all(const float* from, Float16* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const auto word = std::bit_cast<std::uint32_t>(from[i]);
    const std::uint32_t magnitude = word & 0x7fffffffu;
    const std::uint32_t tie = (magnitude >> 13) & 1u;
    const std::uint32_t normal = (magnitude + 0xfffu + tie - 0x38000000u) >> 13;
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u;
    std::uint32_t bits = select(magnitude < 0x38800000u, subnormal, normal);
    bits = select(magnitude >= 0x477ff000u, 0x7c00u, bits);
    bits = select(magnitude > 0x7f800000u, 0x7e00u, bits);
    to[i].bits = static_cast<std::uint16_t>(((word >> 16) & 0x8000u) | bits);
  }
}

void convert_all(const Float16* from, float* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t word = from[i].bits;
    const std::uint32_t magnitude = (word & 0x7fffu) << 13;
    // The exponent is 112 short; the product is exact.
    const auto scaled = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
    const std::uint32_t bits = select(magnitude >= 0x7c00u << 13, magnitude | 0x7f800000u, scaled);
    to[i] = std::bit_cast<float>(((word & 0x8000u) << 16) | bits);
  }
}

}  // namespace

void convert(const Operand& from, const Operand& to) {
  visit(from.dtype(), [&]<class From>(From) {
    visit(to.dtype(), [&]<class To>(To) {
      const From* source = from.as<From>();
      To* target = to.as<To>();
      parallel_chunks(from.elements(), grain_for(1), [&](std::int64_t begin, std::int64_t end) {
        convert_all(source + begin, target + begin, end - begin);
      });
    });
  });
}

}  // namespace palimpsest
