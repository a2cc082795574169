#pragma once

/// Special functions of one number in f64. They are compiled once for all instruction-set levels.
/// The f32 kernels call them too and round once.
namespace palimpsest {

/// log |Γ(x)|. Uses the C library.
double log_gamma(double x);

/// The digamma function ψ = (log Γ)' for order 0, else its derivative of that order. At the poles
/// 0, −1, …: NaN; for even orders ±∞ at ±0, for odd orders ∞.
double polygamma(int order, double x);

/// The Hurwitz zeta function Σ (k + q)⁻ˣ over k ≥ 0. ∞ for x = 1, NaN for x < 1; ∞ for q = 0, −1,
/// …, and NaN for other q < 0 unless x is whole.
double hurwitz_zeta(double x, double q);

/// The number whose error function is y.
double inverse_erf(double y);

/// The modified Bessel function Iₙ(x) for n ≥ 0, multiplied by exp(−|x|) if `scaled`.
double bessel_i(int n, bool scaled, double x);

/// The spherical Bessel function jₙ, of x or of π·x if `times_pi`, for n ≥ 0.
double spherical_bessel_j(int n, bool times_pi, double x);

}  // namespace palimpsest
