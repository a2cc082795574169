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

template <std::size_t n>
double polynomial_at(double x, const double (&coefficients)[n]) {
  double y = coefficients[n - 1];
  for (std::size_t i = n - 1; i-- > 0;) y = y * x + coefficients[i];
  return y;
}

/// ψ on [1, 2]: its root, in three parts, times a rational function (Boost.Math, J. Maddock).
double digamma_near_root(double x) {
  constexpr double root[] = {1569415565.0 / 1073741824.0, 381566830.0 / 1073741824.0 / 1073741824.0,
                             0.9016312093258695918615325266959189453125e-19};
  constexpr double above[] = {0.25479851061131551,  -0.32555031186804491,  -0.65031853770896507,
                              -0.28919126444774784, -0.045251321448739056, -0.0020713321167745952};
  constexpr double below[] = {1.0,
                              2.0767117023730469,
                              1.4606242909763515,
                              0.43593529692665969,
                              0.054151797245674225,
                              0.0021284987017821144,
                              -0.55789841321675513e-6};
  const double distance = x - root[0] - root[1] - root[2];
  const double rest = polynomial_at(x - 1, above) / polynomial_at(x - 1, below);
  return distance * 0.99558162689208984375 + distance * rest;
}

double digamma_of_positive(double x) {
  // −B₂ₖ/(2k), the coefficients of ψ(x) − log x + 1/(2x) in powers of 1/x².
  constexpr double tail[] = {-1.0 / 12,  1.0 / 120,       -1.0 / 252, 1.0 / 240,
                             -1.0 / 132, 691.0 / 32760.0, -1.0 / 12};
  if (x >= 10) {
    const double inverse = 1 / x;
    const double square = inverse * inverse;
    return std::log(x) - (inverse / 2 - square * polynomial_at(square, tail));
  }
  if (x < 1) return digamma_near_root(x + 1) - 1 / x;
  double sum = 0;
  for (; x > 2; --x) sum += 1 / (x - 1);
  return sum + digamma_near_root(x);
}

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

/// Σ over k of (square·sign/4)ᵏ/(k!·(n + 1)…(n + k)): the power series of Iₙ.
double bessel_series(int n, double square) {
  double term = 1, sum = 1;
  for (int k = 1; term > sum * 0x1p-56; ++k) {
    term *= square / 4 / (k * static_cast<double>(n + k));
    sum += term;
  }
  return sum;
}

/// √(2πx)·exp(−x)·Iₙ(x) by its expansion in powers of 1/x.
double bessel_expansion(int n, double x) {
  double term = 1, sum = 1;
  for (int k = 1; k < 60; ++k) {
    const double odd = 2 * k - 1;
    const double next = -term * (4.0 * n * n - odd * odd) / (8 * k * x);
    if (std::abs(next) < 0x1p-56 || (k > n && std::abs(next) > std::abs(term))) break;
    term = next;
    sum += term;
  }
  return sum;
}

}  // namespace

double log_gamma(double x) {
  int sign = 0;  // std::lgamma would store it in a global variable
  return ::lgamma_r(x, &sign);
}

double polygamma(int order, double x) {
  if (x > 0) {
    if (std::isinf(x)) return order == 0 ? x : 0;
    if (order == 0) return digamma_of_positive(x);
    return order % 2 == 0 ? -pole_sum(order, x) : pole_sum(order, x);
  }
  const double fraction = -x - std::floor(-x);
  if (!(fraction > 0)) {
    if (order % 2 != 0 && fraction == 0) return infinity;
    return x == 0 ? -1 / x : not_a_number;
  }
  const double other = 1 - fraction;
  if (order == 0) {
    const double tangent = fraction < 0.5 ? std::tan(pi * fraction) : -std::tan(pi * other);
    return digamma_of_positive(1 - x) + pi / tangent;
  }
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
  for (; last < 12 + x; ++last) {
    const double term = std::pow(last, -x);
    sum += term;
    if (term <= sum * 0x1p-56) return sum;
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

double inverse_erf(double y) {
  // M. Wichura, "Algorithm AS 241: The percentage points of the normal distribution" (1988).
  constexpr double inner_above[] = {3.3871328727963666080e0, 1.3314166789178437745e2,
                                    1.9715909503065514427e3, 1.3731693765509461125e4,
                                    4.5921953931549871457e4, 6.7265770927008700853e4,
                                    3.3430575583588128105e4, 2.5090809287301226727e3};
  constexpr double inner_below[] = {1.0,
                                    4.2313330701600911252e1,
                                    6.8718700749205790830e2,
                                    5.3941960214247511077e3,
                                    2.1213794301586595867e4,
                                    3.9307895800092710610e4,
                                    2.8729085735721942674e4,
                                    5.2264952788528545610e3};
  constexpr double middle_above[] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                     5.76949722146069140550e0,  3.64784832476320460504e0,
                                     1.27045825245236838258e0,  2.41780725177450611770e-1,
                                     2.27238449892691845833e-2, 7.74545014278341407640e-4};
  constexpr double middle_below[] = {1.0,
                                     2.05319162663775882187e0,
                                     1.67638483018380384940e0,
                                     6.89767334985100004550e-1,
                                     1.48103976427480074590e-1,
                                     1.51986665636164571966e-2,
                                     5.47593808499534494600e-4,
                                     1.05075007164441684324e-9};
  constexpr double outer_above[] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                                    1.78482653991729133580e0,  2.96560571828504891230e-1,
                                    2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                    2.71155556874348757815e-5, 2.01033439929228813265e-7};
  constexpr double outer_below[] = {1.0,
                                    5.99832206555887937690e-1,
                                    1.36929880922735805310e-1,
                                    1.48753612908506148525e-2,
                                    7.86869131145613259100e-4,
                                    1.84631831751005468180e-5,
                                    1.42151175831644588870e-7,
                                    2.04426310338993978564e-15};
  constexpr double root_half = std::numbers::sqrt2 / 2;
  const double magnitude = std::abs(y);
  if (!(magnitude < 1)) return magnitude == 1 ? std::copysign(infinity, y) : not_a_number;
  const double half = y / 2;
  if (magnitude <= 0.85) {
    const double r = 0.180625 - half * half;
    return half * root_half * (polynomial_at(r, inner_above) / polynomial_at(r, inner_below));
  }
  const double r = std::sqrt(-std::log((1 - magnitude) / 2));
  const double distance =
      r <= 5 ? polynomial_at(r - 1.6, middle_above) / polynomial_at(r - 1.6, middle_below)
             : polynomial_at(r - 5, outer_above) / polynomial_at(r - 5, outer_below);
  return std::copysign(distance * root_half, y);
}

double bessel_i(int n, bool scaled, double x) {
  const double magnitude = std::abs(x);
  double y = 0;
  if (magnitude < 30 + static_cast<double>(n) * n) {
    y = bessel_series(n, magnitude * magnitude);
    for (int i = 1; i <= n; ++i) y *= magnitude / (2 * i);
    if (scaled) y *= std::exp(-magnitude);
  } else {
    y = bessel_expansion(n, magnitude) / std::sqrt(2 * pi) / std::sqrt(magnitude);
    if (!scaled) y = y * std::exp(magnitude / 2) * std::exp(magnitude / 2);
    if (std::isinf(magnitude)) y = scaled ? 0 : infinity;
  }
  return n % 2 != 0 ? std::copysign(y, x) : y;
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
