#include <algorithm>
#include <array>
#include <concepts>
#include <type_traits>

#include "autodiff/kernels/half.h"
#include "autodiff/kernels/level.h"
#include "autodiff/kernels/pack.h"

namespace palimpsest::PALIMPSEST_LEVEL {
namespace {

template <ArithmeticStep step, class T>
void apply(Pack<T>& x, const Pack<T>& y) {
  if constexpr (step == ArithmeticStep::add) x = x + y;
  if constexpr (step == ArithmeticStep::subtract) x = x - y;
  if constexpr (step == ArithmeticStep::subtract_from) x = y - x;
  if constexpr (step == ArithmeticStep::multiply) x = x * y;
}

/// Applies the operations to a block, in the type in which they are computed and rounded.
template <class Number, ArithmeticStep... steps>
struct ArithmeticBlock {
  using T = Number;
  static void compute(const double*, T* y, const T* first, std::same_as<const T*> auto... from) {
    compute_block(
        [](Pack<T> x, const auto&... other) {
          (apply<steps>(x, other), ...);
          return x;
        },
        y, first, from...);
  }
};

/// Applies the operations in f32 and rounds each to 16 bits.
template <class Half, ArithmeticStep... steps>
  requires std::is_class_v<Half>
struct ArithmeticBlock<Half, steps...> {
  using T = float;
  static void compute(const double*, float* y, const float* first,
                      std::same_as<const float*> auto... from) {
    Block<float> block;
    std::copy_n(first, block_size<float>, block.numbers);
    (rounded_step<steps>(block.numbers, from), ...);
    std::copy_n(block.numbers, block_size<float>, y);
  }

 private:
  template <ArithmeticStep step>
  static void rounded_step(float* numbers, const float* from) {
    compute_block(
        [](Pack<float> x, const Pack<float>& other) {
          apply<step>(x, other);
          return x;
        },
        numbers, numbers, from);
    round_block<Half>(numbers);
  }
};

template <class T>
BlockOperand<T> operand(const std::byte* data, std::int64_t step) {
  return {reinterpret_cast<const T*>(data), step};
}

template <class Number, ArithmeticStep first, ArithmeticStep second>
void two_steps(const std::byte* const* inputs, const std::int64_t* steps, std::byte* y,
               std::int64_t n) {
  using enum Reads;
  using Steps = ArithmeticBlock<Number, first, second>;
  using T = typename Steps::T;
  static constexpr BlockLoop<T> loops[] = {
      block_loop<T, Steps, number, elements, number>,
      block_loop<T, Steps, number, elements, elements>,
      block_loop<T, Steps, elements, number, number>,
      block_loop<T, Steps, elements, number, elements>,
      block_loop<T, Steps, elements, elements, number>,
      block_loop<T, Steps, elements, elements, elements>,
  };
  if (n == 0) return;
  const int begin = steps[0] == 0 ? 0 : steps[1] == 0 ? 2 : 4;
  in_blocks<T>(loops[begin + (steps[2] != 0)], reinterpret_cast<T*>(y), n,
               {operand<T>(inputs[0], steps[0]), operand<T>(inputs[1], steps[1]),
                operand<T>(inputs[2], steps[2])});
}

/// How the second operand of `step` is read in a three-step kernel: a number only for products.
constexpr Reads reads_of(ArithmeticStep step, bool number) {
  return step == ArithmeticStep::multiply && number ? Reads::number : Reads::elements;
}

template <class T, ArithmeticStep first, ArithmeticStep second, ArithmeticStep third>
void three_steps(const std::byte* const* inputs, const std::int64_t* steps, std::byte* y,
                 std::int64_t n) {
  static constexpr auto loops = []<std::size_t... i>(std::index_sequence<i...>) {
    using Steps = ArithmeticBlock<T, first, second, third>;
    return std::array<BlockLoop<T>, sizeof...(i)>{
        block_loop<T, Steps, Reads::elements, reads_of(first, (i & 4) != 0),
                   reads_of(second, (i & 2) != 0), reads_of(third, (i & 1) != 0)>...};
  }(std::make_index_sequence<8>());
  if (n == 0) return;
  const int numbers = (steps[1] == 0) * 4 + (steps[2] == 0) * 2 + (steps[3] == 0);
  in_blocks<T>(loops[static_cast<std::size_t>(numbers)], reinterpret_cast<T*>(y), n,
               {operand<T>(inputs[0], 1), operand<T>(inputs[1], steps[1]),
                operand<T>(inputs[2], steps[2]), operand<T>(inputs[3], steps[3])});
}

template <ArithmeticStep step>
using Constant = std::integral_constant<ArithmeticStep, step>;

/// Calls `f` with the step as a compile-time constant; null for `none`.
template <class F>
ArithmeticKernel with_step(ArithmeticStep step, F f) {
  switch (step) {
    case ArithmeticStep::none:
      break;
    case ArithmeticStep::add:
      return f(Constant<ArithmeticStep::add>{});
    case ArithmeticStep::subtract:
      return f(Constant<ArithmeticStep::subtract>{});
    case ArithmeticStep::subtract_from:
      return f(Constant<ArithmeticStep::subtract_from>{});
    case ArithmeticStep::multiply:
      return f(Constant<ArithmeticStep::multiply>{});
  }
  return nullptr;
}

template <class Number>
ArithmeticKernel steps(ArithmeticStep one, ArithmeticStep two, ArithmeticStep three) {
  return with_step(one, [&]<ArithmeticStep first>(Constant<first>) -> ArithmeticKernel {
    if constexpr (first == ArithmeticStep::subtract_from) {
      return nullptr;
    } else {
      return with_step(two, [&]<ArithmeticStep second>(Constant<second>) -> ArithmeticKernel {
        if (three == ArithmeticStep::none) return two_steps<Number, first, second>;
        if constexpr (std::is_class_v<Number>) {
          return nullptr;
        } else {
          return with_step(three, []<ArithmeticStep third>(Constant<third>) -> ArithmeticKernel {
            return three_steps<Number, first, second, third>;
          });
        }
      });
    }
  });
}

}  // namespace

void add_arithmetic(Kernels& kernels) {
  kernels.arithmetic_f32 = steps<float>;
  kernels.arithmetic_f64 = steps<double>;
  kernels.arithmetic_bf16 = steps<BFloat16>;
  kernels.arithmetic_f16 = steps<Float16>;
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
