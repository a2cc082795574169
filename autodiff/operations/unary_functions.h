#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <source_location>

namespace palimpsest {
class Var;
}

/// The functions of one variable, each defined in one place: name, formula, value on an Eigen
/// array, adjoint in recorded operations; below, the function users call. Included by the kernels
/// of every instruction-set level, hence without the tape: `V` is always `Var`, and what is called
/// on it is found when the template is used.
///
/// To add one: a struct, its place in `Unary`, the public function, and a row in the gradient
/// tests.
namespace palimpsest::functions {

/// Name, value and derivative in mathematics, one line for the documentation.
struct Text {
  const char* name;
  const char* formula;
  const char* summary;
};

/// Numbers a function was given beside its variable: a slope, bounds, a factor.
using Parameters = std::array<double, 2>;

struct Exp {
  static constexpr Text text{"exp", "y = exp(x), dy/dx = y", "exponential"};
  template <class X>
  static auto value(const X& x) {
    return x.exp();
  }
  template <class V>
  static V adjoint(const V& dy, const V&, const V& y) {
    return dy * y;
  }
};

struct Log {
  static constexpr Text text{"log", "y = log(x), dy/dx = 1/x", "natural logarithm"};
  template <class X>
  static auto value(const X& x) {
    return x.log();
  }
  template <class V>
  static V adjoint(const V& dy, const V& x, const V&) {
    return dy / x;
  }
};

struct Tanh {
  static constexpr Text text{"tanh", "y = tanh(x), dy/dx = 1 - y²", "hyperbolic tangent"};
  template <class X>
  static auto value(const X& x) {
    return x.tanh();
  }
  template <class V>
  static V adjoint(const V& dy, const V&, const V& y) {
    return dy * (1.0 - y * y);
  }
};

struct Negate {
  static constexpr Text text{"negate", "y = -x, dy/dx = -1", "opposite"};
  template <class X>
  static auto value(const X& x) {
    return -x;
  }
  template <class V>
  static V adjoint(const V& dy, const V&, const V&) {
    return -dy;
  }
};

struct Scale {
  static constexpr Text text{"scale", "y = a·x, dy/dx = a", "product with a number"};
  template <class X, class T>
  static auto value(const X& x, T a, T) {
    return x * a;
  }
  template <class V>
  static V adjoint(const V& dy, const V&, const V&, const Parameters& p) {
    return dy * p[0];
  }
};

struct Shift {
  static constexpr Text text{"shift", "y = x + a, dy/dx = 1", "sum with a number"};
  template <class X, class T>
  static auto value(const X& x, T a, T) {
    return x + a;
  }
  template <class V>
  static V adjoint(const V& dy, const V&, const V&, const Parameters&) {
    return dy;
  }
};

struct SubtractFrom {
  static constexpr Text text{"subtract_from", "y = a - x, dy/dx = -1", "a number less the value"};
  template <class X, class T>
  static auto value(const X& x, T a, T) {
    return a - x;
  }
  template <class V>
  static V adjoint(const V& dy, const V&, const V&, const Parameters&) {
    return -dy;
  }
};

struct DivideBy {
  static constexpr Text text{"divide_by", "y = x/a, dy/dx = 1/a", "quotient with a number"};
  template <class X, class T>
  static auto value(const X& x, T a, T) {
    return x / a;
  }
  template <class V>
  static V adjoint(const V& dy, const V&, const V&, const Parameters& p) {
    return dy / p[0];
  }
};

/// x > 0; its derivative is zero wherever it has one.
struct Step {
  static constexpr Text text{"step", "y = 1 if x > 0 else 0, dy/dx = 0",
                             "one where the value is positive"};
  template <class X>
  static auto value(const X& x) {
    using T = typename X::Scalar;
    return (x > T(0)).template cast<T>();
  }
};

struct Relu {
  static constexpr Text text{"relu", "y = max(x, 0), dy/dx = 1 if x > 0 else 0", "rectifier"};
  template <class X>
  static auto value(const X& x) {
    return x.max(typename X::Scalar(0));
  }
  template <class V>
  static V adjoint(const V& dy, const V&, const V& y) {
    return dy * step(y);
  }
};

template <class... Functions>
struct List {
  static constexpr std::size_t size = sizeof...(Functions);
};

/// Position of `F` in a list.
template <class F, class L>
inline constexpr std::size_t position = 0;
template <class F, class First, class... Rest>
inline constexpr std::size_t position<F, List<First, Rest...>> = 1 + position<F, List<Rest...>>;
template <class F, class... Rest>
inline constexpr std::size_t position<F, List<F, Rest...>> = 0;

/// Every function above, in the order of the documentation.
using Unary = List<Exp, Log, Tanh, Negate, Scale, Shift, SubtractFrom, DivideBy, Step, Relu>;

}  // namespace palimpsest::functions

namespace palimpsest {

/// Satisfied by `Var` alone.
template <class V>
concept IsVar = std::same_as<V, Var>;

template <IsVar V>
V exp(const V& x, std::source_location where = std::source_location::current()) {
  return unary<functions::Exp>(x, where);
}
template <IsVar V>
V log(const V& x, std::source_location where = std::source_location::current()) {
  return unary<functions::Log>(x, where);
}
template <IsVar V>
V tanh(const V& x, std::source_location where = std::source_location::current()) {
  return unary<functions::Tanh>(x, where);
}
/// 1 where x > 0, else 0; no derivative flows.
template <IsVar V>
V step(const V& x, std::source_location where = std::source_location::current()) {
  return unary<functions::Step>(x, where);
}
template <IsVar V>
V relu(const V& x, std::source_location where = std::source_location::current()) {
  return unary<functions::Relu>(x, where);
}

}  // namespace palimpsest
