#include "autodiff/convert.h"

#include <cstring>

#include "autodiff/parallel.h"

namespace palimpsest {
namespace {

template <class To, class From>
To convert_element(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<From, BFloat16> || std::is_same_v<From, Float16>) {
    return convert_element<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, BFloat16> || std::is_same_v<To, Float16>) {
    return To(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From{};
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace

void convert(const Operand& from, const Operand& to) {
  visit(from.dtype(), [&]<class From>(From) {
    visit(to.dtype(), [&]<class To>(To) {
      const From* source = from.as<From>();
      To* target = to.as<To>();
      parallel_chunks(from.elements(), grain_for(1), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) target[i] = convert_element<To>(source[i]);
      });
    });
  });
}

}  // namespace palimpsest
