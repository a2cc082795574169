#include <Eigen/Core>

#include "autodiff/kernels/level.h"
#include "autodiff/operations/unary_functions.h"

namespace palimpsest::PALIMPSEST_LEVEL {
namespace {

template <class T>
using Array = Eigen::Array<T, Eigen::Dynamic, 1>;

template <class F, class T>
void loop(const T* x, T* y, std::int64_t n, const double* parameters) {
  const Eigen::Map<const Array<T>> input(x, n);
  Eigen::Map<Array<T>> output(y, n);
  if constexpr (requires { F::value(input); }) {
    output = F::value(input);
  } else {
    output = F::value(input, static_cast<T>(parameters[0]), static_cast<T>(parameters[1]));
  }
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
