// Examples of docs/reference/elementwise.md.
#include "docs/snippets/reference/example.h"

namespace reference {

EXAMPLE(negate, reciprocal, square) {
  const Tensor x = Tensor::vector({1, -2, 4});
  print(negate(x), -x);             // → [-1, 2, -4] [-1, 2, -4]
  print(reciprocal(x), square(x));  // → [1, -0.5, 0.25] [1, 4, 16]
}

EXAMPLE(sqrt, rsqrt, pow) {
  const Tensor x = Tensor::vector({1, 4, 9});
  print(sqrt(x), rsqrt(x));  // → [1, 2, 3] [1, 0.5, 0.3333]
  // By a number.
  print(pow(x, 1.5));  // → [1, 8, 27]
  // Element by element.
  print(pow(x, Tensor::vector({1, 2, 0.5})));  // → [1, 16, 3]
}

EXAMPLE(abs, sign) {
  const Tensor x = Tensor::vector({-3, 0, 2});
  print(abs(x), sign(x));  // → [3, 0, 2] [-1, 0, 1]
}

EXAMPLE(floor, ceil, round, trunc) {
  const Tensor x = Tensor::vector({-1.5, 0.5, 2.7});
  print(floor(x), ceil(x));   // → [-2, 0, 2] [-1, 1, 3]
  print(round(x), trunc(x));  // → [-2, 0, 3] [-1, 0, 2]
}

EXAMPLE(clamp, clamp_min, clamp_max) {
  const Tensor x = Tensor::vector({-3, 0.5, 2});
  print(clamp(x, -1, 1));                   // → [-1, 0.5, 1]
  print(clamp_min(x, 0), clamp_max(x, 0));  // → [0, 0.5, 2] [-3, 0, 0]
}

EXAMPLE(exp, exp2, expm1) {
  const Tensor x = Tensor::vector({0, 1, -1});
  print(exp(x), exp2(x));  // → [1, 2.718, 0.3679] [1, 2, 0.5]
  // Accurate near 0.
  print(expm1(Tensor::vector({1e-6})));  // → [1e-06]
}

EXAMPLE(log, log2, log10, log1p) {
  const Tensor x = Tensor::vector({1, 10, 100});
  print(log(x), log2(x), log10(x));  // → [0, 2.303, 4.605] [0, 3.322, 6.644] [0, 1, 2]
  // Accurate near 0.
  print(log1p(Tensor::vector({1e-6})));  // → [1e-06]
}

EXAMPLE(erf, erfc) {
  print(erf(Tensor::vector({0, 1})), erfc(Tensor::vector({0, 1})));  // → [0, 0.8427] [1, 0.1573]
}

EXAMPLE(logit, logsigmoid) {
  print(logit(Tensor::vector({0.5, 0.9})));  // → [0, 2.197]
  // Limits the argument to [eps, 1 - eps].
  print(logit(Tensor::vector({0, 1}), 1e-6));    // → [-13.82, 13.8]
  print(logsigmoid(Tensor::vector({-100, 0})));  // → [-100, -0.6931]
}

EXAMPLE(sin, cos, tan) {
  const Tensor x = Tensor::vector({0, 0.5236});
  print(sin(x), cos(x), tan(x));  // → [0, 0.5] [1, 0.866] [0, 0.5774]
}

EXAMPLE(asin, acos, atan) {
  const Tensor x = Tensor::vector({0, 0.5});
  print(asin(x), acos(x), atan(x));  // → [0, 0.5236] [1.571, 1.047] [0, 0.4636]
}

EXAMPLE(sinh, cosh, tanh) {
  const Tensor x = Tensor::vector({0, 1});
  print(sinh(x), cosh(x), tanh(x));  // → [0, 1.175] [1, 1.543] [0, 0.7616]
}

EXAMPLE(asinh, acosh, atanh) {
  print(asinh(Tensor::vector({0, 1})), acosh(Tensor::vector({1, 2})));  // → [0, 0.8814] [0, 1.317]
  print(atanh(Tensor::vector({0, 0.5})));                               // → [0, 0.5493]
}

EXAMPLE(relu, leaky_relu, elu, relu6) {
  const Tensor x = Tensor::vector({-2, 0, 8});
  print(relu(x), relu6(x));      // → [0, 0, 8] [0, 0, 6]
  print(leaky_relu(x), elu(x));  // → [-0.02, 0, 8] [-0.8647, 0, 8]
}

EXAMPLE(sigmoid, softplus, softsign) {
  const Tensor x = Tensor::vector({-1, 0, 1});
  print(sigmoid(x), softplus(x));  // → [0.2689, 0.5, 0.7311] [0.3133, 0.6931, 1.313]
  print(softsign(x));              // → [-0.5, 0, 0.5]
}

EXAMPLE(gelu, gelu_tanh, silu, mish) {
  const Tensor x = Tensor::vector({-1, 1});
  print(gelu(x), gelu_tanh(x));  // → [-0.1587, 0.8413] [-0.1588, 0.8412]
  print(silu(x), mish(x));       // → [-0.2689, 0.7311] [-0.3034, 0.8651]
}

EXAMPLE(hardtanh, hardsigmoid, hardswish) {
  const Tensor x = Tensor::vector({-4, 0, 1});
  print(hardtanh(x), hardtanh(x, -2, 2));  // → [-1, 0, 1] [-2, 0, 1]
  print(hardsigmoid(x), hardswish(x));     // → [0, 0.5, 0.6667] [0, 0, 0.6667]
}

EXAMPLE(tanhshrink, softshrink, hardshrink, threshold) {
  const Tensor x = Tensor::vector({-1, 0.2, 2});
  print(softshrink(x), hardshrink(x));         // → [-0.5, 0, 1.5] [-1, 0, 2]
  print(tanhshrink(x), threshold(x, 0.5, 7));  // → [-0.2384, 0.002625, 1.036] [7, 7, 2]
}

EXAMPLE(celu, selu, prelu) {
  const Tensor x = Tensor::vector({-1, 2});
  print(celu(x), selu(x));  // → [-0.6321, 2] [-1.111, 2.101]
  // With a learned slope.
  print(prelu(x, Tensor::vector({0.25})));  // → [-0.25, 2]
}

EXAMPLE(glu) {
  // (1, 2)·sigmoid(0, 100).
  print(glu(Tensor::vector({1, 2, 0, 100})));  // → [0.5, 2]
}

EXAMPLE(lgamma, digamma, polygamma, mvlgamma) {
  const Tensor x = Tensor::vector({1, 5});
  print(lgamma(x), digamma(x));             // → [0, 3.178] [-0.5772, 1.506]
  print(mvlgamma(Tensor::vector({3}), 2));  // → [1.55]
  Tape tape;
  print(polygamma(1, tape.constant(x)));  // → [1.645, 0.2213]
}

EXAMPLE(erfinv, ndtr, entr) {
  print(erfinv(Tensor::vector({0, 0.5})), ndtr(Tensor::vector({0, 1.96})));
  // → [0, 0.4769] [0.5, 0.975]
  // -x·log x.
  print(entr(Tensor::vector({0, 0.5, 1})));  // → [0, 0.3466, 0]
}

EXAMPLE(i0, i1, i0e, i1e, bessel_i) {
  const Tensor x = Tensor::vector({0, 1});
  print(i0(x), i1(x));  // → [1, 1.266] [0, 0.5652]
  // Times exp(-|x|).
  print(i0e(x), i1e(x));  // → [1, 0.4658] [0, 0.2079]
}

EXAMPLE(sinc, spherical_bessel_j) {
  print(sinc(Tensor::vector({0, 0.5, 1})));  // → [1, 0.6366, 0]
  Tape tape;
  print(spherical_bessel_j(1, false, tape.constant(Tensor::vector({1}))));  // → [0.3012]
}

EXAMPLE(add, subtract, multiply, divide) {
  const Tensor a = Tensor::matrix({{1, 2}, {3, 4}}), b = Tensor::vector({10, 20});
  // b is broadcast to both rows.
  print(a + b);  // → [[11, 22], [13, 24]]
  print(a - b);  // → [[-9, -18], [-7, -16]]
  print(a * b);  // → [[10, 40], [30, 80]]
  print(b / a);  // → [[10, 10], [3.333, 5]]
}

EXAMPLE(minimum, maximum, fmin, fmax) {
  const Tensor a = Tensor::vector({1, 5}), b = Tensor::vector({3, NAN});
  // NaN wins.
  print(minimum(a, b), maximum(a, b));  // → [1, nan] [3, nan]
  // NaN loses.
  print(fmin(a, b), fmax(a, b));  // → [1, 5] [3, 5]
}

EXAMPLE(atan2, hypot) {
  const Tensor y = Tensor::vector({3, -1}), x = Tensor::vector({4, 0});
  print(atan2(y, x), hypot(y, x));  // → [0.6435, -1.571] [5, 1]
}

EXAMPLE(logaddexp, logaddexp2, xlogy) {
  const Tensor a = Tensor::vector({1000, 0}), b = Tensor::vector({1000, 1});
  // log(exp(a) + exp(b)) without overflow.
  print(logaddexp(a, b));   // → [1001, 1.313]
  print(logaddexp2(a, b));  // → [1001, 1.585]
  Tape tape;
  print(xlogy(tape.constant(Tensor::vector({0, 2})), tape.constant(Tensor::vector({0, 3}))));
  // → [0, 2.197]
}

EXAMPLE(fmod, remainder, floor_divide) {
  const Tensor a = Tensor::vector({7, -7}), b = Tensor::vector({3, 3});
  // The sign of a.
  print(fmod(a, b));  // → [1, -1]
  // The sign of b.
  print(remainder(a, b));     // → [1, 2]
  print(floor_divide(a, b));  // → [2, -3]
}

EXAMPLE(copysign, signbit, heaviside) {
  print(copysign(Tensor::vector({3, 3}), Tensor::vector({-1, 2})));     // → [-3, 3]
  print(signbit(Tensor::vector({-2, 2})));                              // → [1, 0]
  print(heaviside(Tensor::vector({-1, 0, 1}), Tensor::vector({0.5})));  // → [0, 0.5, 1]
}

EXAMPLE(greater, greater_equal, less, less_equal, equal, not_equal) {
  const Tensor a = Tensor::vector({1, 2, 3}), b = Tensor::vector({3, 2, 1});
  print(a > b, a >= b);                 // → [0, 0, 1] [0, 1, 1]
  print(a < b, a <= b);                 // → [1, 0, 0] [1, 1, 0]
  print(equal(a, b), not_equal(a, b));  // → [0, 1, 0] [1, 0, 1]
}

EXAMPLE(where) {
  const Tensor x = Tensor::vector({-1, 4});
  print(where(x > 0, sqrt(x), 0));  // → [0, 2]
}

EXAMPLE(logical_and, logical_or, logical_not, logical_xor) {
  const Tensor x = Tensor::vector({-2, 1, 5});
  const Tensor a = x > 0, b = x < 3;
  print(logical_and(a, b), logical_or(a, b));  // → [0, 1, 0] [1, 1, 1]
  print(logical_not(a), logical_xor(a, b));    // → [1, 0, 0] [1, 0, 1]
}

EXAMPLE(isnan, isinf, isfinite, isposinf, isneginf) {
  const Tensor x = Tensor::vector({1, NAN, -INFINITY});
  print(isnan(x), isfinite(x));               // → [0, 1, 0] [1, 0, 0]
  print(isinf(x), isposinf(x), isneginf(x));  // → [0, 0, 1] [0, 0, 0] [0, 0, 1]
}

EXAMPLE(nan_to_num, NanToNumOptions) {
  const Tensor x = Tensor::vector({1, NAN, INFINITY});
  print(nan_to_num(x, {.nan = 0, .posinf = 1e6}));  // → [1, 0, 1e+06]
}

EXAMPLE(isclose, CloseOptions) {
  const Tensor a = Tensor::vector({1, 1}), b = Tensor::vector({1.000001, 1.1});
  print(isclose(a, b), isclose(a, b, {.relative = 0.2}));  // → [1, 0] [1, 1]
}

EXAMPLE(frac, rad2deg, deg2rad, ldexp) {
  print(frac(Tensor::vector({1.25, -1.25})), ldexp(Tensor::vector({3}), Tensor::vector({4})));
  // → [0.25, -0.25] [48]
  print(rad2deg(Tensor::vector({3.14159265})), deg2rad(Tensor::vector({180})));  // → [180] [3.142]
}

EXAMPLE(addcmul, addcdiv, lerp) {
  const Tensor x = Tensor::vector({1, 2}), a = Tensor::vector({10, 20}), b = Tensor::vector({2, 4});
  // x + 0.5·a·b.
  print(addcmul(x, a, b, 0.5));  // → [11, 42]
  // x + a/b.
  print(addcdiv(x, a, b));  // → [6, 7]
  // x + 0.25·(a - x).
  print(lerp(x, a, 0.25));  // → [3.25, 6.5]
}

EXAMPLE(sum_to) {
  // Undoes broadcasting.
  print(sum_to(Tensor::matrix({{1, 2}, {3, 4}}), Shape{2}));  // → [4, 6]
}

EXAMPLE(share) {
  print(share(Tensor::vector({1, 2, 3}), Tensor::vector({2, 2, 2})));  // → [0, 0.5, 1]
}

EXAMPLE(igamma, igammac) {
  const Tensor a = Tensor::vector({1, 2});
  const Tensor x = Tensor::vector({1, 1});
  print(igamma(a, x), igammac(a, x));  // → [0.6321, 0.2642] [0.3679, 0.7358]
}

EXAMPLE(zeta) {
  print(zeta(Tensor::vector({2}), Tensor::vector({1})));  // → [1.645]
}

}  // namespace reference
