#include "strategy/export/c_formula.h"

namespace palimpsest {
namespace {

/// Integers of the dtype as unsigned numbers, whose arithmetic wraps around.
std::string unsigned_type(DType dtype) { return "u" + c_type(dtype); }

}  // namespace

CValue CFormula::let(const std::string& expression) {
  const std::string name = "t" + std::to_string(count_++);
  body_.add("const $T $name = $expression;",
            {{"T", c_type(dtype_)}, {"name", name}, {"expression", expression}});
  return {*this, name};
}

std::string CValue::in(const CFormula& formula) const {
  return formula_ == nullptr ? c_literal(number_, formula.dtype()) : text_;
}

CFormula& CValue::formula_of(const CValue& a, const CValue& b) {
  CFormula* const formula = a.formula_ != nullptr ? a.formula_ : b.formula_;
  internal_check(formula != nullptr, "arithmetic on two literals of a formula");
  return *formula;
}

CValue CValue::arithmetic(char sign, const CValue& a, const CValue& b) {
  CFormula& f = formula_of(a, b);
  const std::string left = a.in(f);
  const std::string right = b.in(f);
  if (is_floating(f.dtype())) return f.let(left + ' ' + sign + ' ' + right);
  // Products are computed in 64 bits, because C promotes narrower factors to signed numbers.
  return f.let(filled("($T)(($U)$a $sign ($U)$b)", {{"T", c_type(f.dtype())},
                                                    {"U", unsigned_type(f.dtype())},
                                                    {"a", left},
                                                    {"sign", std::string(1, sign)},
                                                    {"b", right}}));
}

CValue operator-(const CValue& a) {
  CFormula& f = CValue::formula_of(a, a);
  return f.let("-" + a.in(f));
}

CValue choose(const CValue& c, const CValue& a, const CValue& b) {
  CFormula& f = CValue::formula_of(c, c);
  return f.let(c.in(f) + " > 0 ? " + a.in(f) + " : " + b.in(f));
}

CValue larger(const CValue& a, const CValue& b) {
  CFormula& f = CValue::formula_of(a, b);
  const char* const pattern = is_floating(f.dtype()) ? "$a > $b || $a != $a ? $a : $b"  // NaN wins
                                                     : "$a > $b ? $a : $b";
  return f.let(filled(pattern, {{"a", a.in(f)}, {"b", b.in(f)}}));
}

CValue smaller(const CValue& a, const CValue& b) {
  CFormula& f = CValue::formula_of(a, b);
  const char* const pattern =
      is_floating(f.dtype()) ? "$a < $b || $a != $a ? $a : $b" : "$a < $b ? $a : $b";
  return f.let(filled(pattern, {{"a", a.in(f)}, {"b", b.in(f)}}));
}

CValue quotient(const CValue& a, const CValue& b) {
  if (is_floating(CValue::formula_of(a, b).dtype())) return a / b;
  CFormula& f = CValue::formula_of(a, b);
  return f.let(filled(
      "$b == 0 ? 0 : $b == -1 ? ($T)(0 - ($U)$a) : $a / $b",
      {{"a", a.in(f)}, {"b", b.in(f)}, {"T", c_type(f.dtype())}, {"U", unsigned_type(f.dtype())}}));
}

CValue fmod(const CValue& a, const CValue& b) {
  CFormula& f = CValue::formula_of(a, b);
  if (is_floating(f.dtype())) return a.call("fmod", b);
  return f.let(filled("$b == 0 ? $a : $b == -1 ? 0 : $a % $b", {{"a", a.in(f)}, {"b", b.in(f)}}));
}

CValue floor_mod(const CValue& a, const CValue& b) {
  const CValue rest = fmod(a, b);
  CFormula& f = CValue::formula_of(a, b);
  // Integers have no divisor 0 here: their rest is a.
  const char* const pattern = is_floating(f.dtype())
                                  ? "$z != 0 && ($z < 0) != ($b < 0) ? $z + $b : $z"
                                  : "$b != 0 && $z != 0 && ($z < 0) != ($b < 0) ? $z + $b : $z";
  return f.let(filled(pattern, {{"z", rest.in(f)}, {"b", b.in(f)}}));
}

CValue CValue::call(const char* name) const {
  return formula_->let(c_function(name, formula_->dtype()) + "(" + text_ + ")");
}

CValue CValue::call(const char* name, const CValue& second) const {
  CFormula& f = formula_of(*this, second);
  return f.let(c_function(name, f.dtype()) + "(" + in(f) + ", " + second.in(f) + ")");
}

CValue CValue::call_in_f64(const char* name) const {
  if (formula_->dtype() == DType::f64) return call(name);
  return formula_->let(std::string("(float)") + name + "((double)" + text_ + ")");
}

CValue::Factors exponential_factors(const CValue& x) {
  const CValue half = exponential(x * 0.5);
  return {half, half};
}

CValue::Factors decay_factors(const CValue& x) { return exponential_factors(-abs(x)); }

CValue::Gaussian gaussian(const CValue& x, double scale) {
  const bool wide = x.formula_->dtype() == DType::f64;
  // Where the exponential underflows.
  const double end = wide ? (scale == -1 ? 26 : 37) : (scale == -1 ? 10 : 14);
  const CValue magnitude = abs(x);
  const CValue distance = choose(magnitude - end, end, magnitude);
  const std::string cast = wide ? "" : "(float)";
  // In f64, since the exponential magnifies the error of the square.
  const CValue first = x.formula_->let(filled(
      "$cast exp($scale * (double)$d * (double)$d)",
      {{"cast", cast}, {"scale", c_literal(scale, DType::f64)}, {"d", distance.in(*x.formula_)}}));
  return {distance, first, 1.0};
}

CValue times_gaussian(const CValue& factor, const CValue& x, double scale) {
  return factor * gaussian(x, scale).first;
}

CValue over_gaussian(const CValue& factor, const CValue& x) {
  return factor / gaussian(x, -1).first;
}

CValue mills_ratio(const CValue& x) {
  CFormula& f = *x.formula_;
  const std::string cast = f.dtype() == DType::f64 ? "" : "(float)";
  return f.let(filled(
      "$cast(0.5 * erfc((double)$d * 0.70710678118654752) * exp(0.5 * (double)$d * (double)$d))",
      {{"cast", cast}, {"d", x.in(f)}}));
}

}  // namespace palimpsest
