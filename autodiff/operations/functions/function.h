#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <source_location>

#include "autodiff/arithmetic.h"

namespace palimpsest {

class Var;
using Where = std::source_location;  // as in error.h, which the kernels do without

/// Satisfied by `Var` alone.
template <class V>
concept IsVar = std::same_as<V, Var>;

}  // namespace palimpsest

/// What the functions of one and of two variables are made of. Each is a struct that defines its
/// function in one place; the headers that hold them are included by the kernels of every
/// instruction-set level, hence know neither the processor nor the tape. The formulas are written
/// once, for packs of numbers and for `Var`s alike: what is called on either is found when a
/// template is used.
///
/// A function of one variable has
/// - `text`;
/// - `value(x)`;
/// - the adjoint of x, as `from_x(dy, x)` or `from_y(dy, y)`, whichever is cheaper: it becomes an
///   operation of its own, one kernel and one node, and is differentiated again by recording the
///   formula; or, where that is a single recorded operation anyway, as `adjoint(dy, x, y)`; or not
///   at all: then no derivative flows;
/// - `piecewise_linear`, where the adjoint does not change with x.
/// - `magnifies`, where it soon leaves the range of 16-bit types, or their errors count in what is
///   made of it: mixed precision computes it wide.
/// - `arithmetic`, where it is one step of that: on x and its parameter or `number`, or on both
///   variables.
/// A function with parameters takes them as a last `const double*`, and may have `problem`, which
/// says what is wrong with them.
namespace palimpsest::functions {

/// Name, value and derivative in mathematics, one line for the documentation, and the
/// floating-point operations of one element.
struct Text {
  const char* name;
  const char* formula;
  const char* summary;
  double flops = 10;
};

template <class... Functions>
struct List {
  static constexpr std::size_t size = sizeof...(Functions);
};

/// One list after the other.
template <class... A, class... B>
List<A..., B...> operator+(List<A...>, List<B...>);

/// Position of `F` in a list.
template <class F, class L>
inline constexpr std::size_t position = 0;
template <class F, class First, class... Rest>
inline constexpr std::size_t position<F, List<First, Rest...>> = 1 + position<F, List<Rest...>>;
template <class F, class... Rest>
inline constexpr std::size_t position<F, List<F, Rest...>> = 0;

/// The lists of functions of one variable, a header each, in the order of the documentation. A
/// source that includes some of them is not compiled again when another one gains a function.
enum class Family : std::uint8_t { arithmetic, exponential, trigonometric, activation, loss };

/// A function's family and its position there.
struct Place {
  Family family;
  std::size_t position;
};

template <class F, class L>
concept IsIn = position<F, L> < L::size;

/// Each family's header says it of its functions, once they are in its list.
template <class F>
struct FunctionOfNoFamily;
template <class F>
inline constexpr auto place_of = FunctionOfNoFamily<F>();

/// What `F` says of itself as a step of arithmetic.
template <class F>
constexpr ArithmeticStep arithmetic_of() {
  if constexpr (requires { F::arithmetic; }) return F::arithmetic;
  return ArithmeticStep::none;
}

template <class F>
concept Magnifies = requires { F::magnifies; };

/// True when the adjoint of `F`, whose arguments are of type X, is a kernel that reads x, or y.
template <class F, class X>
concept ReadsX = requires(const X& x) { F::from_x(x, x); } ||
                 requires(const X& x, const double* parameters) { F::from_x(x, x, parameters); };
template <class F, class X>
concept ReadsY = requires(const X& y) { F::from_y(y, y); } ||
                 requires(const X& y, const double* parameters) { F::from_y(y, y, parameters); };

/// The adjoint of x by `F::from_x` or `F::from_y`; `z` is x or y.
template <class F, class X>
auto adjoint_of(const X& dy, const X& z, const double* parameters) {
  if constexpr (requires { F::from_x(dy, z); }) {
    return F::from_x(dy, z);
  } else if constexpr (requires { F::from_x(dy, z, parameters); }) {
    return F::from_x(dy, z, parameters);
  } else if constexpr (requires { F::from_y(dy, z); }) {
    return F::from_y(dy, z);
  } else {
    return F::from_y(dy, z, parameters);
  }
}

/// `value` of a Var, with the derivative of `slope`: for formulas that have the digits of one, but
/// lose those of the other.
template <IsVar V>
V with_slope(const V& value, const V& slope) {
  return stop_gradient(value) + (slope - stop_gradient(slope));
}

// `choose(c, a, b)`, a where c > 0 and b elsewhere, `root`, `exponential` and `times_gaussian` are
// defined in the headers kernels/pack*.h for packs and in unary.cpp for `Var`s.

}  // namespace palimpsest::functions
