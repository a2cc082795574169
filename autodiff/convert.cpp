#include "autodiff/convert.h"

#include <bit>

#include "autodiff/parallel.h"

namespace palimpsest {
namespace {

template <class From, class To>
void convert_all(const From* from, To* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = convert_element<To>(from[i]);
}

// The same bits as one by one, in a form that compilers make vectors of.
void convert_all(const float* from, BFloat16* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const auto word = std::bit_cast<std::uint32_t>(from[i]);
    const bool is_nan = (word & 0x7fffffffu) > 0x7f800000u;
    const std::uint32_t rounded = word + 0x7fffu + ((word >> 16) & 1u);
    to[i].bits = static_cast<std::uint16_t>((is_nan ? word | 0x400000u : rounded) >> 16);
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
