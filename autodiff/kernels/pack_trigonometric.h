#pragma once

#include <cmath>

#include "autodiff/kernels/pack_lanes.h"

/// Sine and cosine of f64 packs. The polynomials are those of FDLIBM (Sun Microsystems, 1993).
namespace palimpsest::PALIMPSEST_LEVEL {

/// x = quadrant·π/2 + r + low, with r from −π/4 to π/4. For |x| < 2²⁰.
struct Quadrant {
  Format<double>::Vector r;
  Format<double>::Vector low;
  Format<double>::Integers quadrant;
};

constexpr double quadrants_end = 0x1p20;

[[gnu::always_inline]] inline Quadrant quadrant_of(const Format<double>::Vector& x) {
  using F = Format<double>;
  using Vector = F::Vector;
  // π/2 in parts. All but the last have so few bits that their products with quadrants are exact.
  constexpr double parts[] = {0x1.921fb544p0, 0x1.0b4611a6p-34, 0x1.3198a2ep-69,
                              0x1.b839a252049c1p-104};
  const Vector shifted = x * (2 / std::numbers::pi) + F::rounder;
  const Vector n = shifted - F::rounder;
  const auto minus = [](const Vector& a, const Vector& b, Vector& lost) {
    const Vector difference = a - b;
    const Vector back = difference - a;
    lost = (a - (difference - back)) - (b + back);  // Knuth's error of a sum
    return difference;
  };
  Vector first;
  Vector second;
  const Vector near = minus(x - n * parts[0], n * parts[1], first);
  const Vector rest = minus(near, n * parts[2], second);
  const Vector low = (first + second) - n * parts[3];
  const Vector r = rest + low;
  return {r, (rest - r) + low, F::bits(shifted)};
}

/// The sine for even quadrants and the cosine for odd ones, with the sign of the quadrant.
[[gnu::always_inline]] inline Format<double>::Vector sine_in_quadrant(
    const Quadrant& at, const Format<double>::Integers& quadrant) {
  using F = Format<double>;
  using Vector = F::Vector;
  constexpr double sine[] = {8.33333333332248946124e-03, -1.98412698298579493134e-04,
                             2.75573137070700676789e-06, -2.50507602534068634195e-08,
                             1.58969099521155010221e-10};
  constexpr double cosine[] = {4.16666666666666019037e-02, -1.38888888888741095749e-03,
                               2.48015872894767294178e-05, -2.75573143513906633035e-07,
                               2.08757232129817482790e-09, -1.13596475577881948265e-11};
  constexpr F::Bits lower = (F::Bits{1} << 27) - 1;
  const Vector square = at.r * at.r;
  // half + half_low is r²/2 to twice the digits.
  const Vector high = F::number(F::bits(at.r) & ~lower);
  const Vector half = high * high * 0.5;
  const Vector half_low = (at.r - high) * (at.r + high) * 0.5;
  // −r³/6 is the largest term. The first coefficient is the difference from it.
  const Vector beyond =
      at.r * square * (square * polynomial(square, sine) + (1.0 / 6 - 1.66666666666666324348e-01));
  const Vector s = at.r + (at.r * half * (-1.0 / 3) +
                           (beyond + (at.low - half * at.low - at.r * half_low * (1.0 / 3))));
  const Vector one = 1 - half;
  const Vector rest = square * square * polynomial(square, cosine) - at.r * at.low - half_low;
  const Vector c = one + (((1 - one) - half) + rest);
  const Vector y = (quadrant & 1) != 0 ? c : s;
  return F::number(F::bits(y) ^ ((quadrant & 2) << 62));
}

template <class Library>
[[gnu::always_inline]] inline Pack<double> sine_from(Library library, std::uint64_t offset,
                                                     const Pack<double>& x) {
  using F = Format<double>;
  const F::Vector lanes = x.lanes();
  const F::Vector magnitude = F::number(F::bits(lanes) & ~F::sign);
  const Quadrant at = quadrant_of(lanes);
  const Pack<double> y(sine_in_quadrant(at, at.quadrant + offset));
  const auto far = ~(magnitude < quadrants_end);
  return any_of(far) ? replace_lanes(library, far, x, y) : y;
}

/// The C library computes |x| ≥ 2²⁰.
[[gnu::always_inline]] inline Pack<double> sin(const Pack<double>& x) {
  const Pack<double> y = sine_from([](double number) { return std::sin(number); }, 0, x);
  return Pack<double>(x.lanes() == 0.0 ? x.lanes() : y.lanes());  // keeps −0
}
[[gnu::always_inline]] inline Pack<double> cos(const Pack<double>& x) {
  return sine_from([](double number) { return std::cos(number); }, 1, x);
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
