#include <type_traits>

#include "autodiff/kernels/blocks.h"
#include "autodiff/kernels/half.h"
#include "autodiff/kernels/level.h"

namespace palimpsest::PALIMPSEST_LEVEL {
namespace {

template <ArithmeticStep step>
auto apply(const auto& x, const auto& y) {
  if constexpr (step == ArithmeticStep::add) return x + y;
  if constexpr (step == ArithmeticStep::subtract) return x - y;
  if constexpr (step == ArithmeticStep::subtract_from) return y - x;
  if constexpr (step == ArithmeticStep::multiply) return x * y;
}

/// What numbers are rounded to: not at all, since T is what they are computed in.
template <class Number>
struct Rounding {
  using T = Number;
  static auto of(const auto& numbers) { return numbers; }
};
template <class Half>
  requires std::is_class_v<Half>
struct Rounding<Half> {
  using T = float;
  static Block<float> of(const auto& numbers) {
    Block<float> block = numbers;
    round_block<Half>(block.data());
    return block;
  }
};

template <ArithmeticStep first, ArithmeticStep second, class R, class C>
void loop_over(const typename R::T* a, const typename R::T* b, const C& c,
               const std::int64_t* steps, typename R::T* y, std::int64_t n) {
  using T = typename R::T;
  const auto f = [](const auto& left, const auto& right, const auto& other) {
    return R::of(apply<second>(R::of(apply<first>(left, right)), other));
  };
  if (steps[0] != 0 && steps[1] != 0) return in_blocks(y, n, f, Elements<T>(a), Elements<T>(b), c);
  if (steps[0] != 0) return in_blocks(y, n, f, Elements<T>(a), Number<T>(b), c);
  in_blocks(y, n, f, Number<T>(a), Elements<T>(b), c);
}

template <ArithmeticStep first, ArithmeticStep second, class R>
void two_steps(const std::byte* const* inputs, const std::int64_t* steps, std::byte* y,
               std::int64_t n) {
  using T = typename R::T;
  if (n == 0) return;
  const auto* a = reinterpret_cast<const T*>(inputs[0]);
  const auto* b = reinterpret_cast<const T*>(inputs[1]);
  const auto* c = reinterpret_cast<const T*>(inputs[2]);
  auto* to = reinterpret_cast<T*>(y);
  if (steps[2] != 0) return loop_over<first, second, R>(a, b, Elements<T>(c), steps, to, n);
  loop_over<first, second, R>(a, b, Number<T>(c), steps, to, n);
}

/// Calls `f` with what is read as the second operand of `step`: elements, or a number to multiply
/// by.
template <ArithmeticStep step, class T, class F>
void with_operand(const std::byte* data, std::int64_t size, F f) {
  const auto* const numbers = reinterpret_cast<const T*>(data);
  if constexpr (step == ArithmeticStep::multiply) {
    if (size == 0) return f(Number<T>(numbers));
  }
  f(Elements<T>(numbers));
}

template <ArithmeticStep first, ArithmeticStep second, ArithmeticStep third, class T>
void three_steps(const std::byte* const* inputs, const std::int64_t* steps, std::byte* y,
                 std::int64_t n) {
  if (n == 0) return;
  const auto f = [](const auto& left, const auto& right, const auto& next, const auto& last) {
    return apply<third>(apply<second>(apply<first>(left, right), next), last);
  };
  const Elements<T> a(reinterpret_cast<const T*>(inputs[0]));
  with_operand<first, T>(inputs[1], steps[1], [&](const auto& b) {
    with_operand<second, T>(inputs[2], steps[2], [&](const auto& c) {
      with_operand<third, T>(inputs[3], steps[3], [&](const auto& d) {
        in_blocks(reinterpret_cast<T*>(y), n, f, a, b, c, d);
      });
    });
  });
}

template <ArithmeticStep step>
using Constant = std::integral_constant<ArithmeticStep, step>;

/// `f` of the step as a constant; null where there is none.
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
        if (three == ArithmeticStep::none) return two_steps<first, second, Rounding<Number>>;
        if constexpr (std::is_class_v<Number>) {
          return nullptr;
        } else {
          return with_step(three, []<ArithmeticStep third>(Constant<third>) -> ArithmeticKernel {
            return three_steps<first, second, third, Number>;
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
