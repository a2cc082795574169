#include "autodiff/kernels/array_functions.h"
#include "autodiff/kernels/blocks.h"
#include "autodiff/kernels/level.h"
#include "autodiff/operations/binary_functions.h"

namespace palimpsest::PALIMPSEST_LEVEL {
namespace {

template <class F, class T>
void loop(const T* a, std::int64_t a_step, const T* b, std::int64_t b_step, T* y, std::int64_t n) {
  if (n == 0) return;
  const auto f = [](const auto& left, const auto& right) { return F::value(left, right); };
  if (a_step != 0 && b_step != 0) return in_blocks(y, n, f, Elements<T>(a), Elements<T>(b));
  if (a_step != 0) return in_blocks(y, n, f, Elements<T>(a), Number<T>(b));
  if (b_step != 0) return in_blocks(y, n, f, Number<T>(a), Elements<T>(b));
  in_blocks(y, n, f, Number<T>(a), Number<T>(b));
}

template <class F, class T>
constexpr BinaryKernel<T, T> kernel() {
  if constexpr (std::is_floating_point_v<T> || !requires { F::floating; }) return loop<F, T>;
  return nullptr;
}

template <class T, class... F>
const BinaryKernel<T, T>* table(functions::List<F...>) {
  static constexpr BinaryKernel<T, T> kernels[] = {kernel<F, T>()...};
  return kernels;
}

template <class F, class T>
void compare(const T* a, std::int64_t a_step, const T* b, std::int64_t b_step, bool* y,
             std::int64_t n) {
  if (a_step != 0 && b_step != 0) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = F::value(a[i], b[i]);
  } else if (a_step != 0) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = F::value(a[i], *b);
  } else {
    for (std::int64_t i = 0; i < n; ++i) y[i] = F::value(*a, b[i * b_step]);
  }
}

template <class T, class... F>
const BinaryKernel<T, bool>* comparisons(functions::List<F...>) {
  static constexpr BinaryKernel<T, bool> kernels[] = {compare<F, T>...};
  return kernels;
}

}  // namespace

void add_binary(Kernels& kernels) {
  using functions::Binary;
  using functions::Comparison;
  kernels.binary_f32 = table<float>(Binary{});
  kernels.binary_f64 = table<double>(Binary{});
  kernels.binary_i64 = table<std::int64_t>(Binary{});
  kernels.binary_i32 = table<std::int32_t>(Binary{});
  kernels.compare_f32 = comparisons<float>(Comparison{});
  kernels.compare_f64 = comparisons<double>(Comparison{});
  kernels.compare_i64 = comparisons<std::int64_t>(Comparison{});
  kernels.compare_i32 = comparisons<std::int32_t>(Comparison{});
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
