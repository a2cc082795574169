#include "autodiff/kernels/blocks.h"
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

template <ArithmeticStep first, ArithmeticStep second, class T, class C>
void loop_over(const T* a, const T* b, const C& c, const std::int64_t* steps, T* y,
               std::int64_t n) {
  const auto f = [](const auto& left, const auto& right, const auto& other) {
    return apply<second>(apply<first>(left, right), other);
  };
  if (steps[0] != 0 && steps[1] != 0) return in_blocks(y, n, f, Elements<T>(a), Elements<T>(b), c);
  if (steps[0] != 0) return in_blocks(y, n, f, Elements<T>(a), Number<T>(b), c);
  in_blocks(y, n, f, Number<T>(a), Elements<T>(b), c);
}

template <ArithmeticStep first, ArithmeticStep second, class T>
void loop(const std::byte* const* inputs, const std::int64_t* steps, std::byte* y, std::int64_t n) {
  if (n == 0) return;
  const auto* a = reinterpret_cast<const T*>(inputs[0]);
  const auto* b = reinterpret_cast<const T*>(inputs[1]);
  const auto* c = reinterpret_cast<const T*>(inputs[2]);
  auto* to = reinterpret_cast<T*>(y);
  if (steps[2] != 0) return loop_over<first, second>(a, b, Elements<T>(c), steps, to, n);
  loop_over<first, second>(a, b, Number<T>(c), steps, to, n);
}

template <class T, ArithmeticStep first>
PairKernel pair_from(ArithmeticStep second) {
  switch (second) {
    case ArithmeticStep::none:
      break;
    case ArithmeticStep::add:
      return loop<first, ArithmeticStep::add, T>;
    case ArithmeticStep::subtract:
      return loop<first, ArithmeticStep::subtract, T>;
    case ArithmeticStep::subtract_from:
      return loop<first, ArithmeticStep::subtract_from, T>;
    case ArithmeticStep::multiply:
      return loop<first, ArithmeticStep::multiply, T>;
  }
  return nullptr;
}

template <class T>
PairKernel pair(ArithmeticStep first, ArithmeticStep second) {
  switch (first) {
    case ArithmeticStep::none:
    case ArithmeticStep::subtract_from:
      break;
    case ArithmeticStep::add:
      return pair_from<T, ArithmeticStep::add>(second);
    case ArithmeticStep::subtract:
      return pair_from<T, ArithmeticStep::subtract>(second);
    case ArithmeticStep::multiply:
      return pair_from<T, ArithmeticStep::multiply>(second);
  }
  return nullptr;
}

}  // namespace

void add_pairs(Kernels& kernels) {
  kernels.pair_f32 = pair<float>;
  kernels.pair_f64 = pair<double>;
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
