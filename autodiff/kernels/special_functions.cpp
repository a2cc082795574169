#include "autodiff/kernels/special_functions.h"

#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <numbers>

namespace palimpsest {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double pi = std::numbers::pi;

/// n!·x⁻ⁿ⁻¹. The factors alternate, so that no product leaves the range before the result does.
double pole(int n, double x) {
  const double inverse = 1 / x;
  double y = inverse;
  for (int i = 1; i <= n; ++i) y *= i * inverse;
  return y;
}

/// n!·Σ (x + k)⁻ⁿ⁻¹ over k ≥ 0, for x > 0 and n ≥ 1: the first terms one by one, the others by the
/// Euler–Maclaurin formula.
double pole_sum(int n, double x) {
  // B₂ₖ/(2k)!
  constexpr double factors[] = {1.0 / 12,          -1.0 / 720,
                                1.0 / 30240,       -1.0 / 1209600,
                                1.0 / 47900160,    -691.0 / 1307674368000,
                                1.0 / 74724249600, -3617.0 / 10670622842880000};
  const int count = x < 12 + n ? static_cast<int>(12 + n - x) + 1 : 0;
  const double last = x + count;
  const double first = pole(n, last);
  double rising = (n + 1) / last;
  double sum = 0;
  for (int k = 0; k < static_cast<int>(std::size(factors)); ++k) {
    sum += factors[k] * rising;
    rising *= (n + 2 * k + 2) / last * ((n + 2 * k + 3) / last);
  }
  double total = pole(n - 1, last) + first * (0.5 + sum);
  for (int k = count - 1; k >= 0; --k) total += pole(n, x + k);  // the smallest terms first
  return total;
}

/// sin and cos of x or of π·x, accurate near the multiples of π.
struct SinCos {
  double sine, cosine;
};
SinCos sin_cos(bool times_pi, double x) {
  if (!times_pi) return {std::sin(x), std::cos(x)};
  const double rest = x - 2 * std::rint(x / 2);  // in [−1, 1]
  const double magnitude = std::abs(rest);
  const double sine = std::sin(pi * (magnitude > 0.5 ? 1 - magnitude : magnitude));
  const double cosine = magnitude > 0.25 && magnitude < 0.75 ? std::sin(pi * (0.5 - magnitude))
                                                             : std::cos(pi * magnitude);
  return {std::copysign(sine, rest), cosine};
}

}  // namespace

double log_gamma(double x) {
  int sign = 0;  // std::lgamma would store it in a global variable
  return ::lgamma_r(x, &sign);
}

double reflected_digamma(double x) {
  const double fraction = -x - std::floor(-x);
  if (!(fraction > 0)) return x == 0 ? -1 / x : not_a_number;
  const double tangent = fraction < 0.5 ? std::tan(pi * fraction) : -std::tan(pi * (1 - fraction));
  return pi / tangent;
}

double polygamma(int order, double x) {
  if (x > 0) {
    if (std::isinf(x)) return 0;
    return order % 2 == 0 ? -pole_sum(order, x) : pole_sum(order, x);
  }
  const double fraction = -x - std::floor(-x);
  if (!(fraction > 0)) {
    if (order % 2 != 0 && fraction == 0) return infinity;
    return x == 0 ? -1 / x : not_a_number;
  }
  const double other = 1 - fraction;
  // The poles on both sides of x: those on the left are mirrored.
  const double right = pole_sum(order, other);
  const double left = pole_sum(order, fraction) - pole_sum(order, 1 - x);
  return order % 2 == 0 ? left - right : left + right;
}

double hurwitz_zeta(double x, double q) {
  if (x == 1) return infinity;
  if (!(x > 1) || q != q) return not_a_number;
  if (q <= 0) {
    const double fraction = q - std::floor(q);
    if (fraction == 0) return infinity;
    if (x != std::floor(x)) return not_a_number;
    const double sign = std::fmod(x, 2) == 0 ? 1 : -1;
    constexpr int most = 100;
    if (x > most) return sign * std::pow(1 - fraction, -x) + std::pow(fraction, -x);
    double factorial = 1;
    for (int k = 2; k < static_cast<int>(x); ++k) factorial *= k;
    return sign * polygamma(static_cast<int>(x) - 1, q) / factorial;
  }
  if (std::isinf(q) || std::isinf(x)) return q < 1 ? infinity : (q == 1 && !std::isinf(q) ? 1 : 0);
  // The first terms one by one, the others by the Euler–Maclaurin formula.
  constexpr double factors[] = {1.0 / 12,          -1.0 / 720,
                                1.0 / 30240,       -1.0 / 1209600,
                                1.0 / 47900160,    -691.0 / 1307674368000,
                                1.0 / 74724249600, -3617.0 / 10670622842880000};
  double sum = 0;
  double last = q;
  while (last < 12 + x) {
    const double term = std::pow(last, -x);
    sum += term;
    if (term <= sum * 0x1p-56) return sum;
    ++last;
  }
  const double term = std::pow(last, -x);
  double rising = x / last;
  double rest = 0.5;
  for (int k = 0; k < static_cast<int>(std::size(factors)); ++k) {
    rest += factors[k] * rising;
    rising *= (x + 2 * k + 1) / last * ((x + 2 * k + 2) / last);
  }
  return sum + term * (last / (x - 1) + rest);
}

double spherical_bessel_j(int n, bool times_pi, double x) {
  const double z = std::abs(times_pi ? pi * x : x);
  const double sign = n % 2 != 0 && std::signbit(x) ? -1 : 1;
  if (n == 0 ? z == 0 : z < n) {
    // zⁿ/(2n + 1)!!·Σ (−z²/2)ᵏ/(k!·(2n + 3)(2n + 5)…)
    double y = sign;
    for (int i = 1; i <= n; ++i) y *= z / (2 * i + 1);
    double term = 1, sum = 1;
    for (int k = 1; std::abs(term) > 0x1p-56; ++k) {
      term *= -z * z / 2 / (k * static_cast<double>(2 * n + 2 * k + 1));
      sum += term;
    }
    return y * sum;
  }
  const SinCos at = sin_cos(times_pi, std::abs(x));
  double before = at.cosine / z;  // j₋₁
  double y = at.sine / z;
  for (int i = 0; i < n; ++i) {
    const double next = (2 * i + 1) / z * y - before;
    before = y;
    y = next;
  }
  return sign * y;
}

}  // namespace palimpsest
