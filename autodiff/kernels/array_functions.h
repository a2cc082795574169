#pragma once

#include <Eigen/Core>
#include <cmath>
#include <type_traits>

// What the formulas of the functions call and Eigen 3.4 has not, or does not vectorise. In Eigen's
// namespace, renamed per level, since that is where argument-dependent lookup finds it.
namespace Eigen {
namespace internal {

template <class T>
struct choose_op {
  T operator()(const T& c, const T& a, const T& b) const { return c > T(0) ? a : b; }
  template <class Packet>
  Packet packetOp(const Packet& c, const Packet& a, const Packet& b) const {
    return pselect(pcmp_lt(pzero(c), c), a, b);
  }
};

template <class T>
struct functor_traits<choose_op<T>> {
  enum { Cost = 3 * NumTraits<T>::AddCost, PacketAccess = packet_traits<T>::Vectorizable };
};

template <class C, class A>
auto like_array(const A& a) {
  if constexpr (std::is_arithmetic_v<A>) {
    return C::PlainObject::Constant(a);
  } else {
    return a;
  }
}

}  // namespace internal

/// a where c > 0, b elsewhere (also where c is NaN); a and b may be numbers.
template <class C, class A, class B>
auto choose(const ArrayBase<C>& c, const A& a, const B& b) {
  using internal::choose_op;
  using Left = std::remove_cvref_t<decltype(internal::like_array<C>(a))>;
  using Right = std::remove_cvref_t<decltype(internal::like_array<C>(b))>;
  return CwiseTernaryOp<choose_op<typename C::Scalar>, const C, const Left, const Right>(
      c.derived(), internal::like_array<C>(a), internal::like_array<C>(b));
}

/// exp(x), 0 where that is less than half the smallest number: Eigen's vectorised exp stops at a
/// subnormal one, even at −∞.
template <class X, class T = typename X::Scalar>
auto exponential(const ArrayBase<X>& x) {
  constexpr T lowest = sizeof(T) == 4 ? T(-103.98) : T(-745.14);
  return choose(lowest - x.derived(), T(0), x.derived().exp());
}

/// How minima and maxima treat NaN, which integers do not have.
template <class T>
inline constexpr int nan_rule = std::is_integral_v<T> ? PropagateFast : PropagateNaN;

/// The larger and the smaller one; NaN where either is.
template <class A, class B, class T = typename A::Scalar>
auto larger(const ArrayBase<A>& a, const ArrayBase<B>& b) {
  return a.binaryExpr(b, internal::scalar_max_op<T, T, nan_rule<T>>());
}
template <class A, class B, class T = typename A::Scalar>
auto smaller(const ArrayBase<A>& a, const ArrayBase<B>& b) {
  return a.binaryExpr(b, internal::scalar_min_op<T, T, nan_rule<T>>());
}

/// a/b; of integers 0 where b is 0, and the least one where it does not fit.
template <class A, class B>
auto quotient(const ArrayBase<A>& a, const ArrayBase<B>& b) {
  using T = typename A::Scalar;
  if constexpr (std::is_integral_v<T>) {
    return a.binaryExpr(b, [](T x, T y) { return y == 0 ? T(0) : y == -1 ? T(-x) : T(x / y); });
  } else {
    return a / b;
  }
}

template <class A, class B>
auto atan2(const ArrayBase<A>& a, const ArrayBase<B>& b) {
  using T = typename A::Scalar;
  return a.binaryExpr(b, [](T x, T y) { return std::atan2(x, y); });
}

}  // namespace Eigen
