#include <Eigen/Core>

#include "autodiff/kernels/level.h"
#include "autodiff/operations/binary_functions.h"

namespace palimpsest::PALIMPSEST_LEVEL {
namespace {

template <class T>
using Array = Eigen::Array<T, Eigen::Dynamic, 1>;

template <class F, class T, class Y>
void loop(const T* a, std::int64_t a_step, const T* b, std::int64_t b_step, Y* y, std::int64_t n) {
  if (n == 0) return;
  Eigen::Map<Array<Y>> output(y, n);
  const Eigen::Map<const Array<T>> left(a, a_step == 0 ? 1 : n);
  const Eigen::Map<const Array<T>> right(b, b_step == 0 ? 1 : n);
  if (a_step != 0 && b_step != 0) {
    output = F::value(left, right);
  } else if (a_step != 0) {
    output = F::value(left, Array<T>::Constant(n, *b));
  } else if (b_step != 0) {
    output = F::value(Array<T>::Constant(n, *a), right);
  } else {
    output.setConstant(F::value(left, right)(0));
  }
}

template <class T, class Y, class... F>
const BinaryKernel<T, Y>* table(functions::List<F...>) {
  static constexpr BinaryKernel<T, Y> kernels[] = {loop<F, T, Y>...};
  return kernels;
}

}  // namespace

void add_binary(Kernels& kernels) {
  using functions::Binary;
  using functions::Comparison;
  kernels.binary_f32 = table<float, float>(Binary{});
  kernels.binary_f64 = table<double, double>(Binary{});
  kernels.binary_i64 = table<std::int64_t, std::int64_t>(Binary{});
  kernels.binary_i32 = table<std::int32_t, std::int32_t>(Binary{});
  kernels.compare_f32 = table<float, bool>(Comparison{});
  kernels.compare_f64 = table<double, bool>(Comparison{});
  kernels.compare_i64 = table<std::int64_t, bool>(Comparison{});
  kernels.compare_i32 = table<std::int32_t, bool>(Comparison{});
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
