#include "autodiff/kernels/level.h"
#include "autodiff/kernels/pack_functions.h"
#include "autodiff/operations/functions/unary_functions.h"

namespace palimpsest::PALIMPSEST_LEVEL {
namespace {

template <class F, class T>
struct UnaryBlock {
  static void compute([[maybe_unused]] const double* parameters, T* y, const T* x) {
    compute_block<T>(
        [&](const Pack<T>& pack) {
          if constexpr (requires { F::value(pack); }) {
            return F::value(pack);
          } else {
            return F::value(pack, parameters);
          }
        },
        y, x);
  }
};

template <class F, class T>
void unary_kernel(const T* x, T* y, std::int64_t n, const double* parameters) {
  in_blocks<T>(block_loop<T, UnaryBlock<F, T>, Reads::elements>, y, n, {{x, 1}}, parameters);
}

template <class T, class... F>
const UnaryKernel<T>* unary_table(functions::List<F...>) {
  static constexpr UnaryKernel<T> kernels[] = {unary_kernel<F, T>...};
  return kernels;
}

}  // namespace

void add_unary(Kernels& kernels) {
  kernels.unary_f32 = unary_table<float>(functions::Unary{});
  kernels.unary_f64 = unary_table<double>(functions::Unary{});
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
