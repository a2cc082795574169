#include "autodiff/convert.h"

#include "autodiff/parallel.h"

namespace palimpsest {
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
