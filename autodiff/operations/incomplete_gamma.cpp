#include "autodiff/operations/incomplete_gamma.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "autodiff/kernels/special_functions.h"
#include "autodiff/operations/jet.h"
#include "autodiff/operations/normal_quantile.h"

namespace palimpsest {
namespace {

using std::exp;
using std::log;

/// From here on a power of the variate is taken as normal (Wilson and Hilferty, 1931). The
/// distribution function is then exact to about 1e-6.
constexpr double large_shape = 1e5;

double size_of_number(double x) { return std::abs(x); }
double size_of_number(const Jet& x) { return x.size(); }
double first_of_number(double x) { return x; }
double first_of_number(const Jet& x) { return x[0]; }

/// log Γ(x) for x ≥ 0 by Stirling's series, after a shift to x ≥ 10. NaN below, where the shift
/// would be long or, from −∞, endless.
template <class N>
N log_gamma_function(N x) {
  if (!(first_of_number(x) >= 0)) return x * std::numeric_limits<double>::quiet_NaN();
  N shift = x * 0.0;
  while (first_of_number(x) < 10) {
    shift = shift + log(x);
    x = x + 1.0;
  }
  const N inverse = 1.0 / x;
  const N square = inverse * inverse;
  N series = square * (1.0 / 156);
  for (const double term : {-691.0 / 360360, 1.0 / 1188, -1.0 / 1680, 1.0 / 1260, -1.0 / 360}) {
    series = (series + term) * square;
  }
  constexpr double half_log_two_pi = 0.91893853320467274178;
  return (x + -0.5) * log(x) - x + half_log_two_pi + (series + 1.0 / 12) * inverse - shift;
}

/// Σ yⁿ/((a + 1)…(a + n)), so that P(a, y) = y^a·e^(−y)/Γ(a + 1) times it. For y < a + 1.
template <class N>
N lower_series(const N& a, double y) {
  N term = a * 0.0 + 1.0;
  N sum = term;
  for (int n = 1; n < 20000; ++n) {
    term = term * y / (a + n);
    sum = sum + term;
    if (size_of_number(term) < 1e-17 * first_of_number(sum)) break;
  }
  return sum;
}

/// The continued fraction C with Q(a, y) = y^a·e^(−y)/Γ(a)·C, by the method of Lentz (1976). For
/// y ≥ a + 1.
template <class N>
N upper_fraction(const N& a, double y) {
  N b = a * -1.0 + (y + 1);
  N c = a * 0.0 + 1e300;
  N d = 1.0 / b;
  N fraction = d;
  for (int i = 1; i < 20000; ++i) {
    const N numerator = (a + -static_cast<double>(i)) * static_cast<double>(i);
    b = b + 2.0;
    d = 1.0 / (numerator * d + b);
    c = b + numerator / c;
    const N factor = d * c;
    fraction = fraction * factor;
    if (size_of_number(factor + -1.0) < 1e-16) break;
  }
  return fraction;
}

/// log P or log Q, and q divided by P or Q.
struct GammaTail {
  double log_probability;
  double hazard;
};

GammaTail gamma_tail(double a, double log_gamma_a, double l, bool upper) {
  const double y = std::exp(l);
  const double log_density = a * l - y - log_gamma_a;
  const bool series = y < a + 1;
  double log_probability = log_density + (series ? log(lower_series(a, y) / a)  //
                                                 : log(upper_fraction(a, y)));
  if (series == upper) log_probability = std::log1p(-std::min(1.0, std::exp(log_probability)));
  return {log_probability, std::exp(log_density - log_probability)};
}

/// The normal variable that corresponds to l, for a large shape.
template <class N>
N normal_of_log_gamma(const N& a, double l) {
  const N third = exp((log(a) * -1.0 + l) * (1.0 / 3));
  return exp(log(a) * 0.5) * 3.0 * (third + -1.0 + 1.0 / (a * 9.0));
}

/// xᵃ·e^(−x)/Γ(a + 1), for a ≥ 20 without the cancellation of large terms.
double power_term(double a, double x) {
  if (a < 20 && x < 700) return std::pow(x, a) * std::exp(-x) / std::tgamma(a + 1);
  if (a < 20) return std::exp(a * std::log(x) - x - log_gamma(a + 1));
  const double distance = (x - a) / a;
  const double power =
      distance > -0.5 ? std::log1p(distance) - distance : std::log(x / a) - distance;
  const double inverse = 1 / a;
  const double square = inverse * inverse;
  const double rest =
      inverse *
      (1.0 / 12 -
       square * (1.0 / 360 - square * (1.0 / 1260 - square * (1.0 / 1680 - square / 1188))));
  return std::exp(a * power - 0.5 * std::log(2 * std::numbers::pi * a) - rest);
}

/// Q(a, x) for small x by the series of P without its first term, which nearly is 1 for small a.
double upper_series(double a, double x) {
  double factor = 1;
  double sum = 0;
  for (int n = 1; n < 200; ++n) {
    factor *= -x / n;
    const double term = factor / (a + n);
    sum += term;
    if (std::abs(term) < 1e-17 * std::abs(sum)) break;
  }
  const double first = -std::expm1(a * std::log(x) - log_gamma(a + 1));
  return first - a * std::pow(x, a) / std::tgamma(a + 1) * sum;
}

/// Q(a, x) for a large shape, by the first terms of the uniform expansion (Temme, 1979).
double upper_of_large(double a, double x) {
  const double distance = (x - a) / a;
  const double half_square = distance - std::log1p(distance);
  const double eta = std::copysign(std::sqrt(2 * std::max(0.0, half_square)), distance);
  const double first =
      std::abs(eta) < 1e-2
          ? -1.0 / 3 + eta * (1.0 / 12 - eta * (2.0 / 135 - eta * (1.0 / 864 + eta / 2835)))
          : 1 / distance - 1 / eta;
  const double density = std::exp(-a * half_square) / std::sqrt(2 * std::numbers::pi * a);
  return 0.5 * std::erfc(eta * std::sqrt(a / 2)) + density * first;
}

double factorial(int n) {
  double product = 1;
  for (int i = 2; i <= n; ++i) product *= i;
  return product;
}

/// −∂ᵏΦ(z(a, l))/∂aᵏ / k!, divided by the density of l, for a large shape.
double derivative_of_large(std::size_t order, double a, double l) {
  const Jet z = normal_of_log_gamma(Jet::variable(order, a), l);
  const Jet density = exp((z * z + -z[0] * z[0]) * -0.5);
  double sum = 0;  // coefficient of the derivative of Φ(z), which is φ(z)·z'
  for (std::size_t i = 1; i <= order; ++i) {
    sum += static_cast<double>(i) * z[i] * density[order - i];
  }
  const double by_l = std::sqrt(a) * std::exp((l - std::log(a)) / 3);
  return -sum / static_cast<double>(order) / by_l;
}

}  // namespace

double log_gamma_quantile(double a, double u) {
  const double root = 3 * std::sqrt(a);
  const double power = 1 - 1 / (root * root) + (a > 0.5 ? normal_quantile(u) / root : -1);
  if (a >= large_shape) return std::log(a) + 3 * std::log(power);
  const double log_gamma_a = log_gamma_function(a);
  double l = power > 0.2 ? std::log(a) + 3 * std::log(power)
                         : (std::log(u) + log_gamma_a + std::log(a)) / a;
  // The logarithms of P and Q are concave in l, so Newton's method converges from every start.
  const bool upper = u > 0.5;
  const double target = upper ? std::log1p(-u) : std::log(u);
  const double most = std::log(a + 40 * std::sqrt(a) + 800);
  for (int step = 0; step < 100; ++step) {
    const auto [log_probability, hazard] = gamma_tail(a, log_gamma_a, l, upper);
    const double change = (target - log_probability) / (upper ? -hazard : hazard);
    const double next = std::min(l + change, most);
    const bool settled = !(std::abs(next - l) > 1e-9 * std::abs(l) + 1e-9);
    l = next;
    if (settled) break;
  }
  return l;
}

double gamma_derivative(GammaDerivative kind, int order, double a, double l) {
  const auto k = static_cast<std::size_t>(order);
  const bool of_density = kind == GammaDerivative::density;
  if (a >= large_shape && !of_density) return factorial(order) * derivative_of_large(k, a, l);
  const double y = std::exp(l);
  const bool lower = y < a + 1 && !of_density;
  const Jet shape = Jet::variable(k, a);
  // The density at a + ε divided by that at a; for the lower series also divided by a + ε.
  Jet exponent = log_gamma_function(lower ? shape + 1.0 : shape) * -1.0;
  exponent[0] = 0;
  exponent[1] += l;
  const Jet density = exp(exponent);
  if (of_density) return factorial(order) * density[k];
  const double coefficient =
      lower ? -(density * lower_series(shape, y))[k] / a : (density * upper_fraction(shape, y))[k];
  return factorial(order) * coefficient;
}

double regularized_gamma(double a, double x, bool upper) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (!(a >= 0) || !(x >= 0) || (a == 0 && x == 0) || (a == infinity && x == infinity)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (a == 0 || x == infinity) return upper ? 0 : 1;
  if (x == 0 || a == infinity) return upper ? 1 : 0;
  constexpr double largest_of_series = 1e6;
  if (a > largest_of_series && std::abs(x - a) < a / 2) {
    const double above = upper_of_large(a, x);
    return upper ? above : 1 - above;
  }
  // The larger one of P and Q follows from the other one, except where both are computed well.
  if (upper && x <= 1.1 && x > a / 1.1 && (x > 0.5 || a < -0.4 / std::log(x))) {
    return upper_series(a, x);
  }
  const bool is_lower = upper ? x <= 1.1 || x < a : x <= 1 || x <= a;
  const double term = power_term(a, x);
  // P = term·(1 + x/(a + 1) + …), and Q = term·a·C.
  const double part = is_lower ? term * lower_series(a, x) : term * a * upper_fraction(a, x);
  return is_lower == upper ? 1 - part : part;
}

double poisson_quantile(double rate, double u) {
  if (rate == 0) return 0;
  const double z = rate < 12 ? 0 : normal_quantile(u);
  const double guess = std::max(0.0, std::floor(rate + z * std::sqrt(rate) + (z * z + 2) / 6));
  if (rate >= large_shape) return guess;
  double k = rate < 12 ? 0 : guess;
  double mass = std::exp(k * std::log(rate) - rate - log_gamma_function(k + 1));
  // P(N ≤ k) = Q(k + 1, rate)
  double sum = mass;
  if (k > 0) {
    const double log_gamma_k = log_gamma_function(k + 1);
    sum = std::exp(gamma_tail(k + 1, log_gamma_k, std::log(rate), true).log_probability);
  }
  while (u > sum && (mass > 1e-20 || k < rate)) {
    k += 1;
    mass *= rate / k;
    sum += mass;
  }
  while (k > 0 && u <= sum - mass) {
    sum -= mass;
    mass *= k / rate;
    k -= 1;
  }
  return k;
}

}  // namespace palimpsest
