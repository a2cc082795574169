#pragma once

/// Special functions of one number in f64, for which packs have no formula (pack_special.h). They
/// are compiled once for all instruction-set levels. The f32 kernels call them too and round once.
namespace palimpsest {

/// log |Γ(x)|. Uses the C library.
double log_gamma(double x);

/// ψ(x) − ψ(1 − x) for x ≤ 0, where ψ is the digamma function. ∓∞ at ±0, and NaN at −1, −2, …
double reflected_digamma(double x);

/// The derivative of order ≥ 1 of the digamma function. At the poles 0, −1, …: NaN for even orders
/// except ∓∞ at ±0, ∞ for odd ones.
double polygamma(int order, double x);

/// The Hurwitz zeta function Σ (k + q)⁻ˣ over k ≥ 0. ∞ for x = 1, NaN for x < 1; ∞ for q = 0, −1,
/// …, and NaN for other q < 0 unless x is whole.
double hurwitz_zeta(double x, double q);

/// The spherical Bessel function jₙ, of x or of π·x if `times_pi`, for n ≥ 0.
double spherical_bessel_j(int n, bool times_pi, double x);

}  // namespace palimpsest
