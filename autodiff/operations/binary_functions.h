#pragma once

#include "autodiff/operations/unary_functions.h"

/// The functions of two variables, as unary_functions.h has those of one. `da` and `db` record the
/// adjoint of one operand before it is summed to that operand's shape.
namespace palimpsest::functions {

struct Add {
  static constexpr Text text{"add", "y = a + b", "sum"};
  template <class A, class B>
  static auto value(const A& a, const B& b) {
    return a + b;
  }
  template <class V>
  static V da(const V& dy, const V&, const V&, const V&) {
    return dy;
  }
  template <class V>
  static V db(const V& dy, const V&, const V&, const V&) {
    return dy;
  }
};

struct Subtract {
  static constexpr Text text{"subtract", "y = a - b", "difference"};
  template <class A, class B>
  static auto value(const A& a, const B& b) {
    return a - b;
  }
  template <class V>
  static V da(const V& dy, const V&, const V&, const V&) {
    return dy;
  }
  template <class V>
  static V db(const V& dy, const V&, const V&, const V&) {
    return -dy;
  }
};

struct Multiply {
  static constexpr Text text{"multiply", "y = a·b, ∂y/∂a = b, ∂y/∂b = a", "product"};
  template <class A, class B>
  static auto value(const A& a, const B& b) {
    return a * b;
  }
  template <class V>
  static V da(const V& dy, const V&, const V& b, const V&) {
    return dy * b;
  }
  template <class V>
  static V db(const V& dy, const V& a, const V&, const V&) {
    return dy * a;
  }
};

struct Divide {
  static constexpr Text text{"divide", "y = a/b, ∂y/∂a = 1/b, ∂y/∂b = -y/b", "quotient"};
  template <class A, class B>
  static auto value(const A& a, const B& b) {
    return a / b;
  }
  template <class V>
  static V da(const V& dy, const V&, const V& b, const V&) {
    return dy / b;
  }
  template <class V>
  static V db(const V& dy, const V&, const V& b, const V& y) {
    return -(dy * (y / b));
  }
};

/// Every function above, in the order of the documentation.
using Binary = List<Add, Subtract, Multiply, Divide>;

struct Greater {
  static constexpr Text text{"greater", "y = a > b", "comparison"};
  template <class A, class B>
  static auto value(const A& a, const B& b) {
    return a > b;
  }
};

/// The comparisons; their result is bool.
using Comparison = List<Greater>;

}  // namespace palimpsest::functions

namespace palimpsest {

template <IsVar V>
V add(const V& a, const V& b, std::source_location where = std::source_location::current()) {
  return binary<functions::Add>(a, b, where);
}
/// a > b element by element; bool.
template <IsVar V>
V greater(const V& a, const V& b, std::source_location where = std::source_location::current()) {
  return comparison<functions::Greater>(a, b, where);
}

}  // namespace palimpsest
