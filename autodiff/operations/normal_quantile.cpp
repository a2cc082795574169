#include "autodiff/operations/normal_quantile.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace palimpsest {
namespace {

constexpr double log_root_two_pi = 0.91893853320467274178;

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

}  // namespace

NormalTail normal_tail(double z) {
  if (z == -std::numeric_limits<double>::infinity()) return {z, -z};
  const double log_density = -0.5 * z * z - log_root_two_pi;
  if (z > -30) {
    const double cdf = normal_cdf(z);
    return {std::log(cdf), std::exp(log_density) / cdf};
  }
  // Laplace's continued fraction x + 1/(x + 2/(x + …)) of φ(x)/Φ(−x)
  const double x = -z;
  double hazard = x;
  for (int i = 20; i > 0; --i) hazard = x + i / hazard;
  return {log_density - std::log(hazard), hazard};
}

double normal_quantile_of_log(double log_p) {
  if (log_p == -std::numeric_limits<double>::infinity()) return log_p;
  // Abramowitz and Stegun (1964), 26.2.23, then Newton steps on log Φ, which is concave: they
  // converge from every start.
  const double x = std::sqrt(-2 * log_p);
  double z = (2.515517 + x * (0.802853 + x * 0.010328)) /
                 (1 + x * (1.432788 + x * (0.189269 + x * 0.001308))) -
             x;
  for (int step = 0; step < 20; ++step) {
    const auto [log_cdf, hazard] = normal_tail(z);
    const double change = (log_p - log_cdf) / hazard;
    z += change;
    if (!(std::abs(change) > 1e-9)) break;
  }
  return z;
}

double normal_quantile(double p) {
  return p <= 0.5 ? normal_quantile_of_log(std::log(p)) : -normal_quantile_of_log(std::log1p(-p));
}

double truncated_normal_quantile(double low, double high, double u) {
  if (!(low < high)) return std::numeric_limits<double>::quiet_NaN();
  // Mirrors the upper half to the lower one, where small probabilities are precise.
  const double first = normal_cdf(low);
  const bool mirrored = first + u * (normal_cdf(high) - first) > 0.5;
  const double begin = mirrored ? -high : low;
  const double end = mirrored ? -low : high;
  const double share = mirrored ? 1 - u : u;
  const double log_end = normal_tail(end).log_cdf;
  const double ratio = std::exp(normal_tail(begin).log_cdf - log_end);
  const double log_p =
      std::min(log_end + std::log(share + (1 - share) * ratio), -std::numbers::ln2);
  const double z = std::clamp(normal_quantile_of_log(log_p), begin, end);
  return mirrored ? -z : z;
}

}  // namespace palimpsest
