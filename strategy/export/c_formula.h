#pragma once

#include <string>
#include <vector>

#include "strategy/export/c_function.h"

namespace palimpsest {

class CFormula;

/// A number of a formula that is being written in C: a variable of the C text, or a literal.
///
/// The formulas of autodiff/operations/functions/ are templates. Called with this type, they write
/// the C text of what they compute with packs of numbers. Each operator declares a variable.
/// Arithmetic on integers wraps around.
class CValue {
 public:
  CValue(double number) : number_(number) {}  // NOLINT(google-explicit-constructor)
  CValue(CFormula& formula, std::string text) : formula_(&formula), text_(std::move(text)) {}

  friend CValue operator+(const CValue& a, const CValue& b) { return arithmetic('+', a, b); }
  friend CValue operator-(const CValue& a, const CValue& b) { return arithmetic('-', a, b); }
  friend CValue operator*(const CValue& a, const CValue& b) { return arithmetic('*', a, b); }
  friend CValue operator/(const CValue& a, const CValue& b) { return arithmetic('/', a, b); }
  friend CValue operator-(const CValue& a);

  // The functions that formulas call; see kernels/pack_functions.h.

  /// a where c > 0, b elsewhere (also where c is NaN).
  friend CValue choose(const CValue& c, const CValue& a, const CValue& b);
  friend CValue larger(const CValue& a, const CValue& b);
  friend CValue smaller(const CValue& a, const CValue& b);
  friend CValue quotient(const CValue& a, const CValue& b);
  friend CValue fmod(const CValue& a, const CValue& b);
  friend CValue floor_mod(const CValue& a, const CValue& b);
  friend CValue abs(const CValue& x) { return x.call("fabs"); }
  friend CValue floor(const CValue& x) { return x.call("floor"); }
  friend CValue ceil(const CValue& x) { return x.call("ceil"); }
  friend CValue rint(const CValue& x) { return x.call("rint"); }
  friend CValue trunc(const CValue& x) { return x.call("trunc"); }
  friend CValue root(const CValue& x) { return x.call("sqrt"); }
  friend CValue exponential(const CValue& x) { return x.call("exp"); }
  friend CValue exp2(const CValue& x) { return x.call("exp2"); }
  friend CValue expm1(const CValue& x) { return x.call("expm1"); }
  friend CValue logarithm(const CValue& x) { return x.call("log"); }
  friend CValue log2(const CValue& x) { return x.call("log2"); }
  friend CValue log10(const CValue& x) { return x.call("log10"); }
  friend CValue log1p(const CValue& x) { return x.call("log1p"); }
  friend CValue log1p_of_fraction(const CValue& x) { return x.call("log1p"); }
  friend CValue sin(const CValue& x) { return x.call("sin"); }
  friend CValue cos(const CValue& x) { return x.call("cos"); }
  friend CValue tan(const CValue& x) { return x.call("tan"); }
  friend CValue asin(const CValue& x) { return x.call("asin"); }
  friend CValue acos(const CValue& x) { return x.call("acos"); }
  friend CValue atan(const CValue& x) { return x.call("atan"); }
  friend CValue sinh(const CValue& x) { return x.call("sinh"); }
  friend CValue cosh(const CValue& x) { return x.call("cosh"); }
  friend CValue tanh(const CValue& x) { return x.call("tanh"); }
  friend CValue asinh(const CValue& x) { return x.call("asinh"); }
  friend CValue acosh(const CValue& x) { return x.call("acosh"); }
  friend CValue atanh(const CValue& x) { return x.call("atanh"); }
  friend CValue erf(const CValue& x) { return x.call_in_f64("erf"); }
  friend CValue erfc(const CValue& x) { return x.call_in_f64("erfc"); }
  friend CValue log_gamma(const CValue& x) { return x.call_in_f64("lgamma"); }
  friend CValue pow(const CValue& a, const CValue& b) { return a.call("pow", b); }
  friend CValue atan2(const CValue& a, const CValue& b) { return a.call("atan2", b); }
  friend CValue hypot(const CValue& a, const CValue& b) { return a.call("hypot", b); }
  friend CValue copysign(const CValue& a, const CValue& b) { return a.call("copysign", b); }
  /// exp(-|x|).
  friend CValue decay(const CValue& x) { return exponential(-abs(x)); }

  struct Factors;
  /// exp(x) and exp(-|x|), as a product of two factors that are in range.
  friend Factors exponential_factors(const CValue& x);
  friend Factors decay_factors(const CValue& x);
  struct Gaussian;
  /// exp(scale·x²) as a product of two factors, and |x|, clamped where the exponential is 0.
  friend Gaussian gaussian(const CValue& x, double scale);
  friend CValue times_gaussian(const CValue& factor, const CValue& x, double scale);
  /// factor·exp(x²)
  friend CValue over_gaussian(const CValue& factor, const CValue& x);
  /// (1 - Φ(x))·exp(x²/2), with Φ the normal distribution.
  friend CValue mills_ratio(const CValue& x);

  /// The text of the number as an operand.
  std::string in(const CFormula& formula) const;

 private:
  static CValue arithmetic(char sign, const CValue& a, const CValue& b);
  static CFormula& formula_of(const CValue& a, const CValue& b);
  /// The C library's function of this name, in the formula's precision.
  CValue call(const char* name) const;
  CValue call(const char* name, const CValue& second) const;
  /// Likewise in f64, rounded once, as the engine's kernels do.
  CValue call_in_f64(const char* name) const;

  CFormula* formula_ = nullptr;  // null for a literal
  std::string text_;
  double number_ = 0;
};

struct CValue::Factors {
  CValue first;
  CValue second;
};

struct CValue::Gaussian {
  CValue distance;
  CValue first;
  CValue second;
};

/// The statements of a formula, added to the body of a loop. All its numbers have one dtype.
class CFormula {
 public:
  CFormula(CBody& body, DType dtype) : body_(body), dtype_(dtype) {}

  DType dtype() const { return dtype_; }
  CBody& body() { return body_; }
  /// Declares a variable with the value of an expression.
  CValue let(const std::string& expression);

 private:
  CBody& body_;
  DType dtype_;
  int count_ = 0;
};

}  // namespace palimpsest
