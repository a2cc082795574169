#include "autodiff/operations/binary.h"
#include "autodiff/operations/elementwise.h"
#include "autodiff/operations/functions/unary_functions.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/unary.h"
#include "tests/autodiff/operation_rows.h"

namespace palimpsest {
namespace {

Tensor between(double low, double high, std::uint64_t seed = 3) {
  return Tensor::uniform({7, 5}, seed, low, high, DType::f64);
}

/// Numbers of both signs, at least 0.25 away from 0.
Tensor off_zero(Shape shape, std::uint64_t seed) {
  Tensor x = Tensor::uniform(shape, seed, -2.5, 2.5, DType::f64);
  for (double& element : x.data<double>()) element += element < 0 ? -0.25 : 0.25;
  return x;
}

using Function = Var (*)(const Var&);

/// A function of one variable and, if it has one, its adjoint operation.
void add_unary(std::vector<OperationRow>& rows, const std::string& name, const Tensor& x,
               Function f, bool has_adjoint = true, int order = 2) {
  rows.push_back({name, "", {x}, [f](auto xs) { return f(xs[0]); }, order});
  if (!has_adjoint) return;
  rows.push_back({name + "_adjoint",
                  "",
                  {x, normal_numbers(x.shape(), 9)},
                  [f](auto xs) {
                    const Var y = f(xs[0]);
                    return vjp({&y, 1}, xs.first(1), xs.last(1))[0];
                  },
                  order});
}

void add_unary_rows(std::vector<OperationRow>& rows) {
  const auto add = [&](const char* name, const Tensor& x, Function f, bool has_adjoint = true,
                       int order = 2) { add_unary(rows, name, x, f, has_adjoint, order); };
  const Tensor x = off_zero({7, 5}, 1);
  const Tensor positive = between(0.25, 3);
  const Tensor inside = between(-0.9, 0.9);

  add("negate", x, [](const Var& v) { return -v; }, false);
  add("shift", x, [](const Var& v) { return v - 2.5; }, false);
  add("subtract_from", x, [](const Var& v) { return 2.5 - v; }, false);
  add("scale", x, [](const Var& v) { return 2.5 * v; }, false);
  add("divide_by", x, [](const Var& v) { return v / 2.5; }, false);
  add("reciprocal", x, [](const Var& v) { return reciprocal(v); });
  add("square", x, [](const Var& v) { return square(v); });
  add("square", x, [](const Var& v) { return pow(v, 2); });
  add("sqrt", positive, [](const Var& v) { return sqrt(v); });
  add("rsqrt", positive, [](const Var& v) { return rsqrt(v); });
  add("power", positive, [](const Var& v) { return pow(v, -1.5); });
  add("power", x, [](const Var& v) { return pow(v, 3); });
  add("abs", x, [](const Var& v) { return abs(v); });
  add("sign", x, [](const Var& v) { return sign(v); }, false, 0);
  add("floor", x, [](const Var& v) { return floor(v); }, false, 0);
  add("ceil", x, [](const Var& v) { return ceil(v); }, false, 0);
  add("round", x, [](const Var& v) { return round(v); }, false, 0);
  add("trunc", x, [](const Var& v) { return trunc(v); }, false, 0);
  add("clamp", x, [](const Var& v) { return clamp(v, -1, 2); });

  add("exp", x, [](const Var& v) { return exp(v); }, false);
  add("exp2", x, [](const Var& v) { return exp2(v); });
  add("expm1", x, [](const Var& v) { return expm1(v); });
  add("log", positive, [](const Var& v) { return log(v); }, false);
  add("log2", positive, [](const Var& v) { return log2(v); });
  add("log10", positive, [](const Var& v) { return log10(v); });
  add("log1p", positive, [](const Var& v) { return log1p(v); });
  add("erf", x, [](const Var& v) { return erf(v); });
  add("erfc", x, [](const Var& v) { return erfc(v); });
  add("logit", between(0.1, 0.9), [](const Var& v) { return logit(v); });

  add("sin", x, [](const Var& v) { return sin(v); });
  add("cos", x, [](const Var& v) { return cos(v); });
  add("tan", inside, [](const Var& v) { return tan(v); });
  add("asin", inside, [](const Var& v) { return asin(v); });
  add("acos", inside, [](const Var& v) { return acos(v); });
  add("atan", x, [](const Var& v) { return atan(v); });
  add("sinh", x, [](const Var& v) { return sinh(v); });
  add("cosh", x, [](const Var& v) { return cosh(v); });
  add("tanh", x, [](const Var& v) { return tanh(v); });
  add("asinh", x, [](const Var& v) { return asinh(v); });
  add("acosh", between(1.25, 4), [](const Var& v) { return acosh(v); });
  add("atanh", inside, [](const Var& v) { return atanh(v); });

  const Tensor negative = between(-1.9, -1.1);
  add("lgamma", positive, [](const Var& v) { return lgamma(v); }, false);
  add("lgamma", negative, [](const Var& v) { return lgamma(v); }, false);
  add("polygamma", positive, [](const Var& v) { return digamma(v); }, false);
  add("polygamma", negative, [](const Var& v) { return digamma(v); }, false);
  add("polygamma", positive, [](const Var& v) { return polygamma(1, v); }, false);
  add("polygamma", between(4, 20), [](const Var& v) { return polygamma(2, v); }, false);
  add("erfinv", inside, [](const Var& v) { return erfinv(v); });
  add("bessel_i", x, [](const Var& v) { return i0(v); }, false);
  add("bessel_i", x, [](const Var& v) { return i1(v); }, false);
  add("bessel_i", x, [](const Var& v) { return i0e(v); }, false);
  add("bessel_i", x, [](const Var& v) { return i1e(v); }, false);
  add("spherical_bessel_j", x, [](const Var& v) { return sinc(v); }, false);
  add("spherical_bessel_j", inside, [](const Var& v) { return sinc(v); }, false);

  add("relu", x, [](const Var& v) { return relu(v); });
  add("leaky_relu", x, [](const Var& v) { return leaky_relu(v, 0.125); });
  add("elu", x, [](const Var& v) { return elu(v, 1.5); });
  add("sigmoid", x, [](const Var& v) { return sigmoid(v); });
  add("softplus", x, [](const Var& v) { return softplus(v); });
  add("gelu", x, [](const Var& v) { return gelu(v); });
  add("gelu_tanh", x, [](const Var& v) { return gelu_tanh(v); });
  add("silu", x, [](const Var& v) { return silu(v); });
  add("mish", x, [](const Var& v) { return mish(v); });
  add("hardtanh", x, [](const Var& v) { return hardtanh(v, -0.8, 2); });
  add("softsign", x, [](const Var& v) { return softsign(v); });
  add("tanhshrink", x, [](const Var& v) { return tanhshrink(v); });
  rows.push_back({"identity", "", {positive}, [](auto xs) {
                    return gradient(gradient(sqrt(xs[0]), xs[0]), xs[0]);
                  }});
}

void add_binary_rows(std::vector<OperationRow>& rows) {
  const Tensor x = normal_numbers({7, 5}, 1);
  const Tensor y = normal_numbers({7, 5}, 2);
  const Tensor p = between(0.25, 3);
  const Tensor amounts = between(0.2, 6, 8);
  const Tensor row = off_zero({5}, 4);
  const Tensor column = off_zero({7, 1}, 5);
  const Tensor long_row = normal_numbers({70001}, 6);
  // No quotient is near a whole number, where the derivatives jump.
  const Tensor dividend = Tensor::from({7.3, -7.3, 5.1, -2.6, 0.4, 9.9}, {2, 3});
  const Tensor divisor = Tensor::from({2.0, 3.0, -2.0, -4.0, 1.5, -3.5}, {2, 3});
  const std::vector<OperationRow> list = {
      {"add", "row", {x, row}, [](auto xs) { return xs[0] + xs[1]; }},
      {"add", "empty", {normal_numbers({0, 5}, 1), row}, [](auto xs) { return xs[0] + xs[1]; }},
      {"subtract", "column and row", {column, row}, [](auto xs) { return xs[0] - xs[1]; }},
      {"multiply", "equal shapes", {x, y}, [](auto xs) { return xs[0] * xs[1]; }},
      {"multiply", "with itself", {x}, [](auto xs) { return xs[0] * xs[0]; }},
      {"multiply",
       "scalars",
       {normal_numbers({}, 1), normal_numbers({}, 2)},
       [](auto xs) { return xs[0] * xs[1]; }},
      {"multiply",
       "large",
       {long_row, normal_numbers({1}, 7)},
       [](auto xs) { return xs[0] * xs[1]; }},
      {"divide", "column", {x, column}, [](auto xs) { return xs[0] / xs[1]; }},
      {"divide", "of a number", {p}, [](auto xs) { return 2.0 / xs[0]; }},
      {"minimum", "row", {x, row}, [](auto xs) { return minimum(xs[0], xs[1]); }},
      {"maximum", "equal shapes", {x, y}, [](auto xs) { return maximum(xs[0], xs[1]); }},
      {"maximum", "with a number", {x}, [](auto xs) { return maximum(xs[0], 0.5); }},
      {"share", "column", {x, column}, [](auto xs) { return share(xs[0], xs[1]); }, 0},
      {"pow", "column", {p, column}, [](auto xs) { return pow(xs[0], xs[1]); }},
      {"pow", "of a number", {x}, [](auto xs) { return pow(2.5, xs[0]); }},
      {"atan2", "row", {x, row}, [](auto xs) { return atan2(xs[0], xs[1]); }},
      {"hypot", "row", {x, row}, [](auto xs) { return hypot(xs[0], xs[1]); }},
      {"igamma", "row", {p, amounts}, [](auto xs) { return igamma(xs[0], xs[1]); }},
      {"igammac", "row", {p, amounts}, [](auto xs) { return igammac(xs[0], xs[1]); }},
      {"zeta", "of 2.5", {p}, [](auto xs) { return zeta(full_like(xs[0], 2.5), xs[0]); }},
      {"logaddexp", "row", {x, row}, [](auto xs) { return logaddexp(xs[0], xs[1]); }},
      {"xlogy", "column", {column, p}, [](auto xs) { return xlogy(xs[0], xs[1]); }},
      {"xlogy", "a number", {p}, [](auto xs) { return xlogy(2.5, xs[0]); }},
      {"fmod", "both signs", {dividend, divisor}, [](auto xs) { return fmod(xs[0], xs[1]); }},
      {"fmod", "a number", {dividend}, [](auto xs) { return fmod(xs[0], 2); }},
      {"remainder",
       "both signs",
       {dividend, divisor},
       [](auto xs) { return remainder(xs[0], xs[1]); }},
      {"remainder", "a number", {dividend}, [](auto xs) { return remainder(xs[0], -2); }},
      {"copysign",
       "row",
       {off_zero({7, 5}, 8), row},
       [](auto xs) { return copysign(xs[0], xs[1]); }},
      {"greater", "row", {x, row}, [](auto xs) { return xs[0] > xs[1]; }, 0},
      {"greater", "a number", {x}, [](auto xs) { return xs[0] > 0.5; }, 0},
      {"greater_equal", "column", {x, column}, [](auto xs) { return xs[0] >= xs[1]; }, 0},
      {"less", "equal shapes", {x, y}, [](auto xs) { return xs[0] < xs[1]; }, 0},
      {"less_equal", "row and column", {row, column}, [](auto xs) { return xs[0] <= xs[1]; }, 0},
      {"equal", "itself", {x}, [](auto xs) { return equal(xs[0], xs[0]); }, 0},
      {"not_equal", "rounded", {x}, [](auto xs) { return not_equal(round(xs[0]), 0); }, 0},
      {"shift",
       "of whole numbers by a fraction",
       {x, Tensor::arange(5)},
       [](auto xs) { return xs[0] * (xs[1] + 0.5) / (0.25 - xs[1]); }},
      {"maximum",
       "absolute value of whole numbers",
       {x, Tensor::arange(5)},
       [](auto xs) { return xs[0] * abs(negate(xs[1]) + 3); }},
      {"less", "of bools", {x, y}, [](auto xs) { return (xs[0] < 0) < (xs[1] < xs[0]); }, 0},
      {"where", "equal shapes", {x, y}, [](auto xs) { return where(xs[0] > 0, xs[0], xs[1]); }},
      {"where",
       "row, column, condition",
       {x, row, column},
       [](auto xs) { return where(xs[0] > 0.25, xs[1], xs[2]); }},
      {"where",
       "numbers",
       {x},
       [](auto xs) { return where(xs[0] > 1, 3, where(xs[0] < -1, xs[0] * xs[0], -2)); }},
      {"logical_and",
       "row and column",
       {row, column},
       [](auto xs) { return logical_and(xs[0] > 0, xs[1] > 0); },
       0},
      {"logical_or",
       "equal shapes",
       {x, y},
       [](auto xs) { return logical_or(xs[0] > 0, xs[1] > 0); },
       0},
      {"logical_not", "", {x}, [](auto xs) { return logical_not(xs[0] > 0); }, 0},
  };
  rows.insert(rows.end(), list.begin(), list.end());
}

}  // namespace

std::vector<OperationRow> elementwise_rows() {
  std::vector<OperationRow> rows;
  add_unary_rows(rows);
  add_binary_rows(rows);
  return rows;
}

}  // namespace palimpsest
