#include <unsupported/Eigen/SpecialFunctions>

#include "autodiff/kernels/array_functions.h"
#include "autodiff/kernels/blocks.h"
#include "autodiff/kernels/level.h"
#include "autodiff/operations/unary_functions.h"

namespace palimpsest::PALIMPSEST_LEVEL {
namespace {

template <class F, class T>
void loop(const T* x, T* y, std::int64_t n, const double* parameters) {
  in_blocks(
      y, n,
      [parameters](const auto& block) {
        if constexpr (requires { F::value(block); }) {
          return F::value(block);
        } else {
          return F::value(block, parameters);
        }
      },
      Elements<T>(x));
}

template <class T, class... F>
const UnaryKernel<T>* table(functions::List<F...>) {
  static constexpr UnaryKernel<T> kernels[] = {loop<F, T>...};
  return kernels;
}

}  // namespace

void add_unary(Kernels& kernels) {
  kernels.unary_f32 = table<float>(functions::Unary{});
  kernels.unary_f64 = table<double>(functions::Unary{});
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
