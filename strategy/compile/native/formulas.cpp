#include "strategy/compile/native/formulas.h"

#include <algorithm>
#include <limits>
#include <map>

#include "autodiff/kernels/kernels.h"
#include "autodiff/operations/functions/trigonometric.h"
#include "autodiff/operations/unary.h"

namespace palimpsest {
namespace {

/// Formulas of functions of floating numbers. `A` and `B` are operands, `N` the number, `T` the
/// type, `R` the root in that type. They spell out functions/*.h, where choose(c, a, b) is
/// c > 0 ? a : b.
const std::map<std::string_view, std::string_view>& floating_formulas() {
  static const std::map<std::string_view, std::string_view> formulas{
      {"divide", "A / B"},
      {"divide_by", "A / N"},
      {"reciprocal", "(T)1 / A"},
      {"reciprocal_adjoint", "-(A * (B * B))"},
      {"square", "A * A"},
      {"square_adjoint", "A * ((T)2 * B)"},
      {"sqrt", "R(A)"},
      {"sqrt_adjoint", "A / ((T)2 * B)"},
      {"rsqrt", "(T)1 / R(A)"},
      {"rsqrt_adjoint", "A * (B * B * B) * (T)-0.5"},
      {"abs_adjoint", "B > 0 ? A : -B > 0 ? -A : (T)0"},
      {"sign", "A > 0 ? (T)1 : -A > 0 ? (T)-1 : A"},
      {"relu", "-A > 0 ? (T)0 : A"},
      {"relu_adjoint", "B > 0 ? A : (T)0"},
      {"exp2_adjoint", "A * (B * (T)0x1.62e42fefa39efp-1)"},
      {"expm1_adjoint", "A * (B + (T)1)"},
      {"log1p_adjoint", "A / (B + (T)1)"},
      {"logit_adjoint", "A / (B * ((T)1 - B))"},
      {"sigmoid_adjoint", "A * (B * ((T)1 - B))"},
      {"share", "A - B > 0 ? (T)1 : B - A > 0 ? (T)0 : (T)0.5"},
  };
  return formulas;
}

const std::map<std::string_view, std::string_view>& comparisons() {
  static const std::map<std::string_view, std::string_view> formulas{
      {"greater", "A > B"},     {"greater_equal", "A >= B"}, {"less", "A < B"},
      {"less_equal", "A <= B"}, {"equal", "A == B"},         {"not_equal", "A != B"},
  };
  return formulas;
}

const std::map<std::string_view, std::string_view>& integer_formulas() {
  static const std::map<std::string_view, std::string_view> formulas{
      {"add", "A + B"}, {"subtract", "A - B"}, {"multiply", "A * B"}};
  return formulas;
}

/// Whether the level's kernel of the adjoint of tanh rounds 1 - y² once. That depends on how the
/// kernels were compiled.
template <class T>
bool rounds_once() {
  // 1 - y² is -(2e + e²), and e² is lost if y² is rounded first.
  constexpr T e = T(1) / (1 << (std::numeric_limits<T>::digits / 2 + 1));
  const T dy = 1;
  const T y = 1 + e;
  T dx = 0;
  const std::size_t tanh = unary_index(functions::place_of<functions::Tanh>);
  kernels().adjoint<T>()[tanh](&dy, &y, &dx, 1, nullptr);
  return dx != -2 * e;
}

std::string_view tanh_adjoint(DType dtype) {
  if (dtype == DType::f64) {
    return rounds_once<double>() ? "A * __builtin_fma(-B, B, 1)" : "A * (1 - B * B)";
  }
  return rounds_once<float>() ? "A * __builtin_fmaf(-B, B, 1)" : "A * (1 - B * B)";
}

std::string filled(std::string_view formula, const FormulaCall& call) {
  std::string text;
  for (std::size_t i = 0; i < formula.size(); ++i) {
    switch (formula[i]) {
      case 'A':
        text += call.inputs[0];
        break;
      case 'B':
        text += call.inputs[1];
        break;
      case 'N':
        text += call.number;
        break;
      case 'T':
        text += c_type(call.result);
        break;
      case 'R':
        text += call.result == DType::f64 ? "__builtin_sqrt" : "__builtin_sqrtf";
        break;
      default:
        text += formula[i];
    }
  }
  return text;
}

std::optional<std::string> found_in(const std::map<std::string_view, std::string_view>& formulas,
                                    const FormulaCall& call) {
  const auto found = formulas.find(call.operation);
  if (found == formulas.end()) return {};
  return filled(found->second, call);
}

/// Conversions that do not depend on how out-of-range numbers are treated.
std::optional<std::string> cast_formula(const FormulaCall& call) {
  const DType from = call.dtypes[0];
  if (call.result == DType::boolean) return call.inputs[0] + " != 0";
  if (is_floating(from) && !is_floating(call.result)) return {};
  return "(" + std::string(c_type(call.result)) + ")" + call.inputs[0];
}

}  // namespace

std::string_view c_type(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return "double";
    case DType::f32:
      return "float";
    case DType::i64:
      return "i64";
    case DType::i32:
      return "i32";
    case DType::i16:
      return "i16";
    case DType::i8:
      return "i8";
    case DType::u8:
    case DType::boolean:
      return "u8";
    case DType::bf16:
    case DType::f16:
      return "u16";
  }
  return "u8";
}

std::optional<std::string> formula_of(const FormulaCall& call) {
  if (std::ranges::any_of(call.dtypes, is_half) || is_half(call.result)) return {};
  if (call.operation == "where") {
    return call.inputs[0] + " ? " + call.inputs[1] + " : " + call.inputs[2];
  }
  if (call.operation == "cast") return cast_formula(call);
  if (call.result == DType::boolean) return found_in(comparisons(), call);
  const bool is_wide_integer = call.result == DType::i64 || call.result == DType::i32;
  if (is_wide_integer) return found_in(integer_formulas(), call);
  if (!is_floating(call.result)) return {};
  if (call.operation == "abs") {
    return (call.result == DType::f64 ? "__builtin_fabs(" : "__builtin_fabsf(") + call.inputs[0] +
           ")";
  }
  if (call.operation == "tanh_adjoint") return filled(tanh_adjoint(call.result), call);
  return found_in(floating_formulas(), call);
}

std::string arithmetic_formula(std::span<const ArithmeticStep> steps,
                               std::span<const std::string> inputs) {
  std::string text = inputs[0];
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::string& other = inputs[i + 1];
    switch (steps[i]) {
      case ArithmeticStep::none:
        break;
      case ArithmeticStep::add:
        text = "(" + text + " + " + other + ")";
        break;
      case ArithmeticStep::subtract:
        text = "(" + text + " - " + other + ")";
        break;
      case ArithmeticStep::subtract_from:
        text = "(" + other + " - " + text + ")";
        break;
      case ArithmeticStep::multiply:
        text = "(" + text + " * " + other + ")";
        break;
    }
  }
  return text;
}

}  // namespace palimpsest
