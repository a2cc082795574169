#pragma once

namespace palimpsest {

// Let l be the logarithm of a variate with the distribution Γ(a, 1). Its density is q(a, l) =
// exp(a·l − eˡ)/Γ(a). Its distribution function is G(a, l) = P(a, eˡ), the regularized incomplete
// gamma function.

/// The l with G(a, l) = u, for a > 0 and 0 < u < 1.
double log_gamma_quantile(double a, double u);

/// The derivatives by a of order `order` at least 1, divided by q(a, l).
enum class GammaDerivative : unsigned char {
  distribution,  ///< −∂ᵏG/∂aᵏ / q; for k = 1 the derivative of l by a at constant G
  density,       ///< ∂ᵏq/∂aᵏ / q
};
constexpr int max_gamma_order = 12;
double gamma_derivative(GammaDerivative kind, int order, double a, double l);

/// The regularized incomplete gamma function P(a, x), or Q(a, x) = 1 − P(a, x) if `upper`. NaN
/// unless a ≥ 0 and x ≥ 0, and for a = x = 0.
double regularized_gamma(double a, double x, bool upper);

/// The smallest k with P(N ≤ k) ≥ u for a Poisson variable N of the given rate.
double poisson_quantile(double rate, double u);

}  // namespace palimpsest
