#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <source_location>

#include "autodiff/arithmetic.h"
#include "autodiff/export.h"

namespace palimpsest PALIMPSEST_EXPORT {

class Var;
using Where = std::source_location;  // as in error.h, which the kernels do not include

/// Satisfied only by `Var`.
template <class V>
concept IsVar = std::same_as<V, Var>;
/// Satisfied by `Var` and by numbers.
template <class V>
concept IsVarOrNumber = IsVar<V> || std::convertible_to<V, double>;

}  // namespace palimpsest

/// How the functions of one and of two variables are defined. Each is a struct that holds its
/// complete definition. The kernels of every instruction-set level include these headers, so they
/// depend neither on the processor nor on the tape. The formulas are written once, for packs of
/// numbers and for `Var`s; the functions they call are looked up when a template is instantiated.
///
/// A function of one variable has
/// - `text`.
/// - `value(x)`.
/// - The adjoint of x in one of three forms. `from_x(dy, x)` or `from_y(dy, y)`, whichever is
///   cheaper, becomes an operation of its own: one kernel and one node, differentiated again by
///   recording the formula. `adjoint(dy, x, y)` is for adjoints that are a single recorded
///   operation anyway. Without any of these no derivative flows. With `from_y` there may be
///   `corrected(dy, x, y)`: the ȳ for the kernel, where the rounding of y would be magnified.
/// - `piecewise_linear`, if the adjoint is locally constant in x.
/// - `magnifies`, if results easily leave the range of 16-bit types, or if rounding errors are
///   amplified downstream: mixed precision computes it in the wide dtype.
/// - `arithmetic`, if it is a single arithmetic operation: on x and its parameter or `number`, or
///   on both variables.
///
/// A function with parameters takes them as a last `const double*`. It may have `problem`, which
/// explains why parameters are invalid; `{}` stands for the next of them.
namespace palimpsest::functions {

/// Name, mathematical definition of value and derivative, one line for the documentation, and the
/// floating-point operations per element.
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

/// Concatenates two lists.
template <class... A, class... B>
List<A..., B...> operator+(List<A...>, List<B...>);

/// Position of `F` in a list.
template <class F, class L>
inline constexpr std::size_t position = 0;
template <class F, class First, class... Rest>
inline constexpr std::size_t position<F, List<First, Rest...>> = 1 + position<F, List<Rest...>>;
template <class F, class... Rest>
inline constexpr std::size_t position<F, List<F, Rest...>> = 0;

/// The lists of functions of one variable, one header each, in the order of the documentation.
/// Adding a function to one list does not recompile sources that include only other lists.
enum class Family : std::uint8_t {
  arithmetic,
  exponential,
  trigonometric,
  special,
  activation,
  loss
};

/// A function's family and its position in it.
struct Place {
  Family family;
  std::size_t position;
};

template <class F, class L>
concept IsIn = position<F, L> < L::size;

/// Defined in each family's header for the functions in its list.
template <class F>
struct FunctionOfNoFamily;
template <class F>
inline constexpr auto place_of = FunctionOfNoFamily<F>();

/// The arithmetic operation that `F` declares.
template <class F>
constexpr ArithmeticStep arithmetic_of() {
  if constexpr (requires { F::arithmetic; }) return F::arithmetic;
  return ArithmeticStep::none;
}

template <class F>
concept Magnifies = requires { F::magnifies; };

/// True when the adjoint of `F`, for arguments of type X, is a kernel that reads x (or y).
template <class F, class X>
concept ReadsX = requires(const X& x) { F::from_x(x, x); } ||
                 requires(const X& x, const double* parameters) { F::from_x(x, x, parameters); };
template <class F, class X>
concept ReadsY = requires(const X& y) { F::from_y(y, y); } ||
                 requires(const X& y, const double* parameters) { F::from_y(y, y, parameters); };

/// The adjoint of x by `F::from_x` or `F::from_y`; `z` is x or y, respectively.
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

/// Returns `value`, but with the derivative of `slope`. For formulas that are accurate in one of
/// the two only.
template <IsVar V>
V with_slope(const V& value, const V& slope) {
  return stop_gradient(value) + (slope - stop_gradient(slope));
}

// `choose(c, a, b)` is a where c > 0 and b elsewhere. It, `root`, `exponential` and
// `times_gaussian` and `over_gaussian` are defined in the headers kernels/pack*.h for packs and in
// unary.cpp for `Var`s.

}  // namespace palimpsest::functions
