#include "autodiff/operations/binary.h"
#include "autodiff/operations/elementwise.h"
#include "tests/autodiff/operation_rows.h"

namespace palimpsest {

std::vector<OperationRow> composed_rows() {
  // No element is near 0, ±0.5 or the other kinks.
  const Tensor x = Tensor::from({-7.1, -2.2, -0.8, -0.3, 0.2, 0.7, 1.4, 2.3, 6.6}, {3, 3});
  const Tensor y = Tensor::from({0.4, -1.7, 2.1, 1.2, -0.9, 0.3, -2.4, 3.3, -0.6}, {3, 3});
  const Tensor row = Tensor::from({-0.35, 1.15, 2.65}, {3});
  const Tensor share = Tensor::uniform({3, 3}, 61, 0.1, 0.4, DType::f64);
  const Tensor large = Tensor::uniform({3, 3}, 62, 0.6, 0.9, DType::f64);
  const Tensor wide = Tensor::uniform({2, 3, 4}, 63, 0.2, 2, DType::f64);
  const Tensor image = Tensor::from({0.4, -1.7, 2.1, 1.2, -0.9, 0.3, -2.4, 3.3}, {2, 2, 2});
  const Tensor slopes = Tensor::from({0.25, -0.5}, {2});
  using Function = Var (*)(const Var&);
  std::vector<OperationRow> rows;
  const auto add = [&](const char* operation, const char* label, Function f, int order = 2) {
    rows.push_back({operation, label, {x}, [f](auto xs) { return f(xs[0]); }, order});
  };
  using Pair = Var (*)(const Var&, const Var&);
  const auto add_pair = [&](const char* operation, const char* label, const Tensor& b, Pair f,
                            int order = 2) {
    rows.push_back({operation, label, {x, b}, [f](auto xs) { return f(xs[0], xs[1]); }, order});
  };
  add("not_equal", "isnan", [](const Var& v) { return isnan(v); }, 0);
  add("equal", "isinf", [](const Var& v) { return isinf(v); }, 0);
  add("equal", "isposinf", [](const Var& v) { return isposinf(v); }, 0);
  add("equal", "isneginf", [](const Var& v) { return isneginf(v); }, 0);
  add("less", "isfinite", [](const Var& v) { return isfinite(v); }, 0);
  add("less", "signbit", [](const Var& v) { return signbit(v); }, 0);
  add_pair(
      "less_equal", "isclose", y,
      [](const Var& a, const Var& b) { return isclose(a, b, {.absolute = 1.25}); }, 0);
  add_pair(
      "not_equal", "logical_xor", y,
      [](const Var& a, const Var& b) { return logical_xor(a > 0, b > 0); }, 0);
  add("where", "nan_to_num", [](const Var& v) { return nan_to_num(v); });
  add_pair("where", "fmax", row, [](const Var& a, const Var& b) { return fmax(a, b); });
  add_pair("where", "fmin", y, [](const Var& a, const Var& b) { return fmin(a, b); });
  add_pair("where", "heaviside", y, [](const Var& a, const Var& b) { return heaviside(a, b); });
  add_pair("minimum", "clamp", row, [](const Var& a, const Var& b) { return clamp(a, b - 4, b); });
  add("clamp", "clamp_min", [](const Var& v) { return clamp_min(v, -1); });
  add("clamp", "clamp_max", [](const Var& v) { return clamp_max(v, 1); });
  add("trunc", "frac", [](const Var& v) { return frac(v); });
  add("scale", "rad2deg", [](const Var& v) { return rad2deg(v); });
  add("scale", "deg2rad", [](const Var& v) { return deg2rad(v); });
  add_pair("exp2", "ldexp", y, [](const Var& a, const Var& b) { return ldexp(a, b); });
  add_pair(
      "remainder", "floor_divide", y, [](const Var& a, const Var& b) { return floor_divide(a, b); },
      0);
  add_pair("multiply", "addcmul", row,
           [](const Var& a, const Var& b) { return addcmul(b, a, a, -1.5); });
  add_pair("divide", "addcdiv", y,
           [](const Var& a, const Var& b) { return addcdiv(b, a, b, 0.75); });
  rows.push_back(
      {"where", "lerp near a", {x, y, share}, [](auto xs) { return lerp(xs[0], xs[1], xs[2]); }});
  rows.push_back(
      {"where", "lerp near b", {x, y, large}, [](auto xs) { return lerp(xs[0], xs[1], xs[2]); }});
  add_pair("scale", "lerp by a number near a", y,
           [](const Var& a, const Var& b) { return lerp(a, b, 0.25); });
  add_pair("scale", "lerp by a number near b", y,
           [](const Var& a, const Var& b) { return lerp(a, b, 0.875); });
  add_pair("logaddexp", "logaddexp2", y,
           [](const Var& a, const Var& b) { return logaddexp2(a, b); });
  rows.push_back({"logit", "clamped", {large}, [](auto xs) { return logit(xs[0], 0.3); }});
  add("softplus", "logsigmoid", [](const Var& v) { return logsigmoid(v); });
  rows.push_back({"xlogy", "entr", {wide}, [](auto xs) { return entr(xs[0]); }});
  add("erfc", "ndtr", [](const Var& v) { return ndtr(v); });
  rows.push_back({"lgamma", "mvlgamma", {wide}, [](auto xs) { return mvlgamma(xs[0] + 2, 3); }});
  add("hardtanh", "relu6", [](const Var& v) { return relu6(v); });
  add("hardtanh", "hardsigmoid", [](const Var& v) { return hardsigmoid(v); });
  add("hardtanh", "hardswish", [](const Var& v) { return hardswish(v); });
  add("elu", "celu", [](const Var& v) { return celu(v, 1.5); });
  add("elu", "selu", [](const Var& v) { return selu(v); });
  add("clamp", "softshrink", [](const Var& v) { return softshrink(v); });
  add("where", "hardshrink", [](const Var& v) { return hardshrink(v); });
  add("where", "threshold", [](const Var& v) { return threshold(v, 0.5, -3); });
  rows.push_back(
      {"where", "prelu of channels", {image, slopes}, [](auto xs) { return prelu(xs[0], xs[1]); }});
  rows.push_back({"where", "prelu of one slope", {x, Tensor::from({0.25}, {1})}, [](auto xs) {
                    return prelu(xs[0], xs[1]);
                  }});
  rows.push_back({"split", "glu", {wide}, [](auto xs) { return glu(xs[0], 2); }});
  return rows;
}

}  // namespace palimpsest
