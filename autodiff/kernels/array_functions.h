#pragma once

#include <Eigen/Core>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <type_traits>

// What the formulas of the functions call and Eigen 3.4 has not, or does not vectorise. In Eigen's
// namespace, renamed per level, since that is where argument-dependent lookup finds it.
namespace Eigen {
namespace internal {

template <class T>
struct ChooseOp {
  T operator()(const T& c, const T& a, const T& b) const { return c > T(0) ? a : b; }
  template <class Packet>
  Packet packetOp(const Packet& c, const Packet& a, const Packet& b) const {
    return pselect(pcmp_lt(pzero(c), c), a, b);
  }
};

template <class T>
struct RootOp {
  T operator()(T x) const { return std::sqrt(x); }
  template <class Packet>
  Packet packetOp(const Packet& x) const {
    // Lane by lane, which compilers make one instruction. Eigen's psqrt is an estimate improved
    // once: not the nearest number, not the same one on all processors, NaN at ∞.
    alignas(64) T lanes[unpacket_traits<Packet>::size];
    pstore(lanes, x);
    for (T& lane : lanes) lane = std::sqrt(lane);
    return pload<Packet>(lanes);
  }
};

// Eigen's packets of exp and log are wrong at the ends of the range only. What mends them follows a
// branch that is seldom taken, since as part of the chain it would double its length; other lanes
// have the same bits either way.

/// f(x) for an f that is exp at its upper end, as f(x − 1)·e there: Eigen's exp of sixteen f32
/// overflows before its result would.
template <class T, class Packet, class F>
Packet with_upper_end(const Packet& x, F f) {
  if constexpr (sizeof(T) == 8) {
    return f(x);
  } else {
    const Packet one = pset1<Packet>(T(1));
    const Packet beyond = pcmp_lt(pset1<Packet>(T(87)), x);
    if (!predux_any(beyond)) return f(x);
    return pmul(f(psub(x, pselect(beyond, one, pzero(x)))),
                pselect(beyond, pset1<Packet>(std::numbers::e_v<T>), one));
  }
}

template <class T>
struct ExponentialOp {
  T operator()(T x) const { return std::exp(x); }
  template <class Packet>
  Packet packetOp(const Packet& x) const {
    const Packet y = with_upper_end<T>(x, [](const Packet& low) { return pexp(low); });
    const Packet below = pcmp_lt(x, pset1<Packet>(sizeof(T) == 4 ? T(-103.98) : T(-745.14)));
    return predux_any(below) ? pselect(below, pzero(x), y) : y;
  }
};

template <class T>
struct ExponentialLessOneOp {
  T operator()(T x) const { return std::expm1(x); }
  template <class Packet>
  Packet packetOp(const Packet& x) const {
    return with_upper_end<T>(x, [](const Packet& low) { return pexpm1(low); });
  }
};

template <class T>
struct LogarithmOp {
  T operator()(T x) const { return std::log(x); }
  template <class Packet>
  Packet packetOp(const Packet& x) const {
    const Packet tiny = pcmp_lt(x, pset1<Packet>(std::numeric_limits<T>::min()));
    if (!predux_any(tiny)) return plog(x);
    constexpr int digits = std::numeric_limits<T>::digits;
    const Packet scale = pset1<Packet>(T(std::int64_t{1} << digits));
    const Packet shift = pset1<Packet>(std::numbers::ln2_v<T> * digits);
    return psub(plog(pselect(tiny, pmul(x, scale), x)), pselect(tiny, shift, pzero(x)));
  }
};

// Eigen reads these under names of its own. What costs much it would not unroll, but begin one by
// one where memory is not aligned, and the bits of an element would depend on its place.
// NOLINTBEGIN(readability-identifier-naming)
template <class T>
struct functor_traits<ChooseOp<T>> {
  enum { Cost = 3 * NumTraits<T>::AddCost, PacketAccess = packet_traits<T>::Vectorizable };
};
template <class T>
struct functor_traits<RootOp<T>> {
  enum { Cost = 1, PacketAccess = packet_traits<T>::Vectorizable };
};
template <class T>
struct functor_traits<ExponentialOp<T>> {
  enum { Cost = 1, PacketAccess = packet_traits<T>::HasExp };
};
template <class T>
struct functor_traits<ExponentialLessOneOp<T>> {
  enum { Cost = 1, PacketAccess = packet_traits<T>::HasExpm1 };
};
template <class T>
struct functor_traits<LogarithmOp<T>> {
  enum { Cost = 1, PacketAccess = packet_traits<T>::HasLog };
};
// NOLINTEND(readability-identifier-naming)

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
  using internal::ChooseOp;
  using Left = std::remove_cvref_t<decltype(internal::like_array<C>(a))>;
  using Right = std::remove_cvref_t<decltype(internal::like_array<C>(b))>;
  return CwiseTernaryOp<ChooseOp<typename C::Scalar>, const C, const Left, const Right>(
      c.derived(), internal::like_array<C>(a), internal::like_array<C>(b));
}

/// √x, correctly rounded.
template <class X, class T = typename X::Scalar>
auto root(const ArrayBase<X>& x) {
  return x.unaryExpr(internal::RootOp<T>());
}

/// exp(x), 0 where that is less than half the smallest number: Eigen's vectorised exp stops at a
/// subnormal one, even at −∞.
template <class X, class T = typename X::Scalar>
auto exponential(const ArrayBase<X>& x) {
  return x.unaryExpr(internal::ExponentialOp<T>());
}

/// exp(x) − 1.
template <class X, class T = typename X::Scalar>
auto exponential_less_one(const ArrayBase<X>& x) {
  return x.unaryExpr(internal::ExponentialLessOneOp<T>());
}

/// log(x); Eigen's vectorised one takes subnormal numbers for the smallest normal one.
template <class X, class T = typename X::Scalar>
auto logarithm(const ArrayBase<X>& x) {
  return x.unaryExpr(internal::LogarithmOp<T>());
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
