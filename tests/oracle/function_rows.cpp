// Elementwise functions of one and of two variables.
#include <cmath>
#include <string>

#include "autodiff/operations/binary.h"
#include "autodiff/operations/elementwise.h"
#include "autodiff/operations/functions/unary_functions.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/loss.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"
#include "tests/oracle/oracle_rows.h"

namespace palimpsest::oracle {
namespace {

struct Function {
  const char* name;
  Var (*call)(const Var&);
  int order = 2;
};

const Function functions[] = {
    {"-x", [](const Var& x) { return -x; }},
    {"x + 2.5", [](const Var& x) { return x + 2.5; }},
    {"x - 2.5", [](const Var& x) { return x - 2.5; }},
    {"2.5 - x", [](const Var& x) { return 2.5 - x; }},
    {"2.5 * x", [](const Var& x) { return 2.5 * x; }},
    {"x / 2.5", [](const Var& x) { return x / 2.5; }},
    {"2.5 / x", [](const Var& x) { return 2.5 / x; }},
    {"reciprocal", [](const Var& x) { return reciprocal(x); }},
    {"square", [](const Var& x) { return square(x); }},
    {"sqrt", [](const Var& x) { return sqrt(x); }},
    {"rsqrt", [](const Var& x) { return rsqrt(x); }},
    {"pow(x, -1.5)", [](const Var& x) { return pow(x, -1.5); }},
    {"pow(x, 0)", [](const Var& x) { return pow(x, 0); }},
    {"pow(x, 0.5)", [](const Var& x) { return pow(x, 0.5); }},
    {"pow(x, 1)", [](const Var& x) { return pow(x, 1); }},
    {"pow(x, 2)", [](const Var& x) { return pow(x, 2); }},
    {"pow(x, 3)", [](const Var& x) { return pow(x, 3); }},
    {"pow(x, -2)", [](const Var& x) { return pow(x, -2); }},
    {"pow(2.5, x)", [](const Var& x) { return pow(2.5, x); }},
    {"abs", [](const Var& x) { return abs(x); }},
    {"sign", [](const Var& x) { return sign(x); }},
    {"floor", [](const Var& x) { return floor(x); }},
    {"ceil", [](const Var& x) { return ceil(x); }},
    {"round", [](const Var& x) { return round(x); }},
    {"clamp(-1, 2)", [](const Var& x) { return clamp(x, -1, 2); }},
    {"exp", [](const Var& x) { return exp(x); }},
    {"expm1", [](const Var& x) { return expm1(x); }},
    {"log", [](const Var& x) { return log(x); }},
    {"log1p", [](const Var& x) { return log1p(x); }},
    {"erf", [](const Var& x) { return erf(x); }},
    {"sin", [](const Var& x) { return sin(x); }},
    {"cos", [](const Var& x) { return cos(x); }},
    {"tan", [](const Var& x) { return tan(x); }},
    {"asin", [](const Var& x) { return asin(x); }},
    {"acos", [](const Var& x) { return acos(x); }},
    {"atan", [](const Var& x) { return atan(x); }},
    {"sinh", [](const Var& x) { return sinh(x); }},
    {"cosh", [](const Var& x) { return cosh(x); }},
    {"tanh", [](const Var& x) { return tanh(x); }},
    {"asinh", [](const Var& x) { return asinh(x); }},
    {"acosh", [](const Var& x) { return acosh(x); }},
    {"atanh", [](const Var& x) { return atanh(x); }},
    {"relu", [](const Var& x) { return relu(x); }},
    {"leaky_relu(0.125)", [](const Var& x) { return leaky_relu(x, 0.125); }},
    {"elu(1.5)", [](const Var& x) { return elu(x, 1.5); }},
    {"sigmoid", [](const Var& x) { return sigmoid(x); }},
    {"softplus", [](const Var& x) { return softplus(x); }},
    {"gelu", [](const Var& x) { return gelu(x); }},
    {"gelu_tanh", [](const Var& x) { return gelu_tanh(x); }},
    {"silu", [](const Var& x) { return silu(x); }},
    {"mish", [](const Var& x) { return mish(x); }},
    {"trunc", [](const Var& x) { return trunc(x); }},
    {"exp2", [](const Var& x) { return exp2(x); }},
    {"log2", [](const Var& x) { return log2(x); }},
    {"log10", [](const Var& x) { return log10(x); }},
    {"erfc", [](const Var& x) { return erfc(x); }},
    {"logit", [](const Var& x) { return logit(x); }},
    {"lgamma", [](const Var& x) { return lgamma(x); }},
    {"digamma", [](const Var& x) { return digamma(x); }},
    {"polygamma(1)", [](const Var& x) { return polygamma(1, x); }},
    {"erfinv", [](const Var& x) { return erfinv(x); }},
    {"i0", [](const Var& x) { return i0(x); }},
    {"i1", [](const Var& x) { return i1(x); }},
    {"i0e", [](const Var& x) { return i0e(x); }},
    {"i1e", [](const Var& x) { return i1e(x); }},
    {"sinc", [](const Var& x) { return sinc(x); }},
    {"hardtanh", [](const Var& x) { return hardtanh(x, -0.8, 2); }},
    {"softsign", [](const Var& x) { return softsign(x); }},
    {"tanhshrink", [](const Var& x) { return tanhshrink(x); }},
    {"stop_gradient", [](const Var& x) { return stop_gradient(x); }, 0},
    {"maximum(x, 1.5)", [](const Var& x) { return maximum(x, 1.5); }},
    {"minimum(x, 1.5)", [](const Var& x) { return minimum(x, 1.5); }},
    {"x > 1.5", [](const Var& x) { return x > 1.5; }, 0},
    {"not_equal(x, 0)", [](const Var& x) { return not_equal(x, 0); }, 0},
    {"where(x > 1, x, 0)", [](const Var& x) { return where(x > 1, x, 0); }},
    {"cast to f64", [](const Var& x) { return cast(x, DType::f64); }, 1},
    {"cast to f32", [](const Var& x) { return cast(x, DType::f32); }, 1},
    {"cast to f16", [](const Var& x) { return cast(x, DType::f16); }, 1},
    {"cast to bf16", [](const Var& x) { return cast(x, DType::bf16); }, 1},
    {"cast to i64", [](const Var& x) { return cast(x, DType::i64); }, 0},
    {"cast to i32", [](const Var& x) { return cast(x, DType::i32); }, 0},
    {"cast to bool", [](const Var& x) { return cast(x, DType::boolean); }, 0},
};

struct FunctionOfTwo {
  const char* name;
  Var (*call)(const Var&, const Var&);
  int order = 2;
};

const FunctionOfTwo functions_of_two[] = {
    {"add", [](const Var& a, const Var& b) { return a + b; }},
    {"subtract", [](const Var& a, const Var& b) { return a - b; }},
    {"multiply", [](const Var& a, const Var& b) { return a * b; }},
    {"divide", [](const Var& a, const Var& b) { return a / b; }},
    {"minimum", [](const Var& a, const Var& b) { return minimum(a, b); }},
    {"maximum", [](const Var& a, const Var& b) { return maximum(a, b); }},
    {"pow(a, b)", [](const Var& a, const Var& b) { return pow(a, b); }},
    {"atan2", [](const Var& a, const Var& b) { return atan2(a, b); }},
    {"hypot", [](const Var& a, const Var& b) { return hypot(a, b); }},
    {"igamma, by x", [](const Var& a, const Var& x) { return igamma(stop_gradient(a), x); }},
    {"igammac, by x", [](const Var& a, const Var& x) { return igammac(stop_gradient(a), x); }},
    {"zeta, by q", [](const Var& x, const Var& q) { return zeta(stop_gradient(x), q); }},
    {"logaddexp", [](const Var& a, const Var& b) { return logaddexp(a, b); }},
    {"xlogy", [](const Var& a, const Var& b) { return xlogy(a, b); }},
    {"fmod", [](const Var& a, const Var& b) { return fmod(a, b); }},
    {"remainder", [](const Var& a, const Var& b) { return remainder(a, b); }},
    {"copysign", [](const Var& a, const Var& b) { return copysign(a, b); }},
    {"a > b", [](const Var& a, const Var& b) { return a > b; }, 0},
    {"a >= b", [](const Var& a, const Var& b) { return a >= b; }, 0},
    {"a < b", [](const Var& a, const Var& b) { return a < b; }, 0},
    {"a <= b", [](const Var& a, const Var& b) { return a <= b; }, 0},
    {"equal", [](const Var& a, const Var& b) { return equal(a, b); }, 0},
    {"not_equal", [](const Var& a, const Var& b) { return not_equal(a, b); }, 0},
    {"where(a > b, a, b)", [](const Var& a, const Var& b) { return where(a > b, a, b); }},
};

/// Elementwise losses of two operands of the same shape.
const FunctionOfTwo losses[] = {
    {"mse", [](const Var& a, const Var& b) { return mse(a, b, Reduction::none); }},
    {"l1", [](const Var& a, const Var& b) { return l1(a, b, Reduction::none); }},
    {"huber(0.75)", [](const Var& a, const Var& b) { return huber(a, b, 0.75, Reduction::none); }},
    {"bce_with_logits",
     [](const Var& a, const Var& b) { return bce_with_logits(a, b, Reduction::none); }},
};

struct View {
  const char* label;
  Shape shape;  ///< of the view
  Var (*see)(const Var&);
};

const View views[] = {
    {"transposed", {3, 5}, [](const Var& x) { return transpose(x); }},
    {"every other one", {9, 4}, [](const Var& x) { return slice(x, 0, {.start = 1, .step = 2}); }},
    {"backwards", {9}, [](const Var& x) { return flip(x); }},
    {"repeated", {4, 1}, [](const Var& x) { return broadcast_to(x, {2, 4, 3}); }},
};

/// Numbers of both signs: half of them around 1, half over many magnitudes.
Tensor ordinary(std::int64_t count, std::uint64_t seed, DType dtype) {
  const Tensor near = Tensor::uniform({count}, seed, -6, 6, DType::f64);
  const Tensor exponents = Tensor::uniform({count}, seed + 1, -9, 8, DType::f64);
  for (std::int64_t i = 1; i < count; i += 2) {
    double& x = near.data<double>()[static_cast<std::size_t>(i)];
    x = std::copysign(std::exp2(exponents.at(i)), x);
  }
  return near.to(dtype);
}

std::string label_of(const Shape& shape) { return "shape " + to_string(shape); }

void add_functions(std::vector<OperationRow>& rows, DType dtype) {
  const std::vector<Shape> shapes = {{}, {0}, {2, 0, 3}, {1}, {7}, {3, 1, 11}};
  for (const Function& f : functions) {
    const auto call = f.call;
    const auto add = [&](std::string label, const Tensor& x) {
      rows.push_back(
          {f.name, std::move(label), {x}, [call](auto xs) { return call(xs[0]); }, f.order});
    };
    add("ordinary numbers", ordinary(512, 11, dtype));
    add("special numbers", numbers(special_numbers(dtype), dtype));
    for (const Shape& shape : shapes) {
      add(label_of(shape), Tensor::uniform(shape, 13, 0.25, 0.75, dtype));
    }
    for (const View& view : views) {
      const auto see = view.see;
      rows.push_back({f.name,
                      view.label,
                      {Tensor::uniform(view.shape, 14, 0.25, 0.75, dtype)},
                      [call, see](auto xs) { return call(see(xs[0])); },
                      f.order});
    }
  }
}

/// All pairs of special numbers.
std::vector<Tensor> pairs(DType dtype) {
  const std::vector<double> all = special_numbers(dtype);
  std::vector<double> a, b;
  for (const double x : all) {
    for (const double y : all) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  return {numbers(a, dtype), numbers(b, dtype)};
}

void add_functions_of_two(std::vector<OperationRow>& rows, DType dtype) {
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{}, {}},         {{1}, {1}},    {{3, 7}, {7}},          {{3, 1}, {1, 7}},
      {{0, 7}, {1, 7}}, {{5}, {0, 1}}, {{2, 1, 3}, {4, 1, 1}}, {{}, {5}}};
  const auto add_all = [&](const FunctionOfTwo& f, bool broadcasts) {
    const auto call = f.call;
    const auto add = [&](std::string label, std::vector<Tensor> inputs) {
      rows.push_back({f.name, std::move(label), std::move(inputs),
                      [call](auto xs) { return call(xs[0], xs[1]); }, f.order});
    };
    add("ordinary numbers", {ordinary(512, 11, dtype), ordinary(512, 21, dtype)});
    add("special numbers", pairs(dtype));
    for (const auto& [a, b] : shapes) {
      if (a != b && !broadcasts) continue;
      add(label_of(a) + " and " + to_string(b),
          {Tensor::uniform(a, 15, 0.25, 2, dtype), Tensor::uniform(b, 16, 0.25, 2, dtype)});
    }
    for (const View& view : views) {
      const auto see = view.see;
      const Tensor x = Tensor::uniform(view.shape, 17, 0.25, 2, dtype);
      const Tensor y = Tensor::uniform(view.shape, 18, 0.25, 2, dtype);
      rows.push_back({f.name,
                      view.label,
                      {x, y},
                      [call, see](auto xs) { return call(see(xs[0]), see(xs[1])); },
                      f.order});
    }
  };
  for (const FunctionOfTwo& f : functions_of_two) add_all(f, true);
  for (const FunctionOfTwo& f : losses) add_all(f, false);
}

}  // namespace

std::vector<OperationRow> function_rows(DType dtype) {
  std::vector<OperationRow> rows;
  add_functions(rows, dtype);
  add_functions_of_two(rows, dtype);
  return rows;
}

}  // namespace palimpsest::oracle
