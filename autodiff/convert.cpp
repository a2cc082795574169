#include "autodiff/convert.h"

#include <type_traits>

#include "autodiff/kernels/kernels.h"
#include "autodiff/parallel.h"

namespace palimpsest {
namespace {

template <class From, class To>
void convert_run(const From* from, To* to, std::int64_t n) {
  if constexpr (std::is_class_v<From> && std::is_same_v<To, float>) {
    kernels().half<From>().widen(from, to, n);
  } else if constexpr (std::is_class_v<To> && std::is_same_v<From, float>) {
    kernels().half<To>().narrow(from, to, n);
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i] = convert_element<To>(from[i]);
  }
}

template <class From, class To>
void convert_call(const PointwiseCall& call) {
  convert_run(call.input<From>(), call.to<To>(), call.n);
}

}  // namespace

PointwiseKernel conversion(DType from, DType to) {
  return visit(from, [&]<class From>(From) {
    return visit(to, []<class To>(To) { return PointwiseKernel{convert_call<From, To>}; });
  });
}

void convert(const Operand& from, const Operand& to) {
  const auto run = conversion(from.dtype(), to.dtype()).run;
  const std::int64_t from_size = size_of(from.dtype());
  const std::int64_t to_size = size_of(to.dtype());
  parallel_chunks(from.elements(), grain_for(1), [&](std::int64_t begin, std::int64_t end) {
    run({{}, {from.data + begin * from_size}, {1}, to.data + begin * to_size, end - begin});
  });
}

void convert_one(DType from, const std::byte* x, DType to, std::byte* y) {
  conversion(from, to).run({{}, {x}, {1}, y, 1});
}

}  // namespace palimpsest
