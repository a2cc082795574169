#include <algorithm>

#include "autodiff/kernels/level.h"
#include "autodiff/kernels/pack_functions.h"
#include "autodiff/operations/functions/binary_functions.h"

namespace palimpsest::PALIMPSEST_LEVEL {
namespace {

template <class F, class T>
struct BinaryBlock {
  static void compute(const double*, T* y, const T* a, const T* b) {
    compute_block<T>(
        [](const Pack<T>& left, const Pack<T>& right) { return F::value(left, right); }, y, a, b);
  }
};

template <class F, class T>
void compute_binary(const T* a, std::int64_t a_step, const T* b, std::int64_t b_step, T* y,
                    std::int64_t n) {
  if (n == 0) return;
  if (a_step == 0 && b_step == 0) {
    in_blocks<T>(block_loop<T, BinaryBlock<F, T>, Reads::elements, Reads::elements>, y, 1,
                 {{a, 1}, {b, 1}});
    std::fill_n(y + 1, n - 1, *y);
    return;
  }
  constexpr auto number = Reads::number;
  constexpr auto elements = Reads::elements;
  const BlockLoop<T> loop = a_step != 0 && b_step != 0
                                ? block_loop<T, BinaryBlock<F, T>, elements, elements>
                            : a_step != 0 ? block_loop<T, BinaryBlock<F, T>, elements, number>
                                          : block_loop<T, BinaryBlock<F, T>, number, elements>;
  in_blocks<T>(loop, y, n, {{a, a_step}, {b, b_step}});
}

template <class F, class T>
constexpr BinaryKernel<T, T> binary_kernel() {
  if constexpr (std::is_floating_point_v<T> || !requires { F::floating; })
    return compute_binary<F, T>;
  return nullptr;
}

template <class T, class... F>
const BinaryKernel<T, T>* binary_table(functions::List<F...>) {
  static constexpr BinaryKernel<T, T> kernels[] = {binary_kernel<F, T>()...};
  return kernels;
}

template <class F, class T>
void compare(const T* a, std::int64_t a_step, const T* b, std::int64_t b_step, bool* y,
             std::int64_t n) {
  if (a_step != 0 && b_step != 0) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = F::value(a[i], b[i]);
  } else if (a_step != 0) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = F::value(a[i], *b);
  } else if (b_step != 0) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = F::value(*a, b[i]);
  } else if (n > 0) {
    std::fill_n(y, n, F::value(*a, *b));
  }
}

/// a < b as b > a, and a ≤ b as b ≥ a.
template <class F, class T>
void compare_swapped(const T* a, std::int64_t a_step, const T* b, std::int64_t b_step, bool* y,
                     std::int64_t n) {
  compare<F, T>(b, b_step, a, a_step, y, n);
}

template <class F, class T>
constexpr BinaryKernel<T, bool> comparison() {
  if constexpr (std::is_same_v<F, functions::Less>) return compare_swapped<functions::Greater, T>;
  if constexpr (std::is_same_v<F, functions::LessEqual>) {
    return compare_swapped<functions::GreaterEqual, T>;
  }
  return compare<F, T>;
}

template <class T, class... F>
const BinaryKernel<T, bool>* comparisons(functions::List<F...>) {
  static constexpr BinaryKernel<T, bool> kernels[] = {comparison<F, T>()...};
  return kernels;
}

}  // namespace

void add_binary(Kernels& kernels) {
  using functions::Binary;
  using functions::Comparison;
  kernels.binary_f32 = binary_table<float>(Binary{});
  kernels.binary_f64 = binary_table<double>(Binary{});
  kernels.binary_i64 = binary_table<std::int64_t>(Binary{});
  kernels.binary_i32 = binary_table<std::int32_t>(Binary{});
  kernels.compare_f32 = comparisons<float>(Comparison{});
  kernels.compare_f64 = comparisons<double>(Comparison{});
  kernels.compare_i64 = comparisons<std::int64_t>(Comparison{});
  kernels.compare_i32 = comparisons<std::int32_t>(Comparison{});
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
