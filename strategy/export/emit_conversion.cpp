#include "autodiff/operations/attributes.h"
#include "strategy/export/emitters.h"

/// Constants and conversions between dtypes.
namespace palimpsest {
namespace {

/// Defines the conversion of a floating number to an integer: truncated and clamped, 0 for NaN.
std::string to_integer_helper(DType from, DType to) {
  // The lowest integer is a power of two, so it is exact in both floating types.
  const char* const bits = to == DType::i32 ? "32" : "64";
  return filled(R"(static $To @$name($From x) {
  const $From least = ($From)INT$bits_MIN;
  if (x >= least && x < -least) return ($To)x;
  if (x != x) return 0;
  return x < least ? INT$bits_MIN : INT$bits_MAX;
}
)",
                {{"To", c_type(to)},
                 {"From", c_type(from)},
                 {"name", std::string(name_of(from)) + "_to_" + std::string(name_of(to))},
                 {"bits_MIN", std::string(bits) + "_MIN"},
                 {"bits_MAX", std::string(bits) + "_MAX"}});
}

/// The expression of `number` in another dtype.
std::string converted(CBody& body, const std::string& number, DType from, DType to) {
  if (from == to) return number;
  if (to == DType::boolean) return number + " != 0";
  if (is_floating(from) && is_integer(to)) {
    body.use(to_integer_helper(from, to));
    return "@" + std::string(name_of(from)) + "_to_" + std::string(name_of(to)) + "(" + number +
           ")";
  }
  return "(" + c_type(to) + ")" + number;
}

void emit_cast(const CNode& node, CBody& body) {
  body.open("for (long i = 0; i < $n; ++i)", {{"n", node.output_shape().elements()}});
  body.add("y0[i] = $number;",
           {{"number", converted(body, "x0[i]", node.inputs[0].dtype, node.dtype())}});
  body.close();
}

void emit_full(const CNode& node, CBody& body) {
  const double value = node.attributes.as<FullAttributes>().value;
  body.open("for (long i = 0; i < $n; ++i)", {{"n", node.output_shape().elements()}});
  body.add("y0[i] = $number;", {{"number", c_literal(value, node.dtype())}});
  body.close();
}

void emit_linspace(const CNode& node, CBody& body) {
  const auto& [start, step, stop, has_stop] = node.attributes.as<LinspaceAttributes>();
  const std::int64_t n = node.output_shape().elements();
  body.open("for (long i = 0; i < $n; ++i)", {{"n", n}});
  body.add("const double number = $rising;",
           {{"rising", has_stop ? filled("i < $turn ? $start + (double)i * $step"
                                         " : $stop - (double)($n - 1 - i) * $step",
                                         {{"turn", (n + 1) / 2},
                                          {"start", c_literal(start, DType::f64)},
                                          {"step", c_literal(step, DType::f64)},
                                          {"stop", c_literal(stop, DType::f64)},
                                          {"n", n}})
                                : filled("$start + (double)i * $step",
                                         {{"start", c_literal(start, DType::f64)},
                                          {"step", c_literal(step, DType::f64)}})}});
  body.add("y0[i] = $number;", {{"number", converted(body, "number", DType::f64, node.dtype())}});
  body.close();
}

}  // namespace

void add_conversion_emitters(CEmitters& emitters) {
  emitters["cast"] = {emit_cast};
  emitters["full"] = {emit_full};
  emitters["linspace"] = {emit_linspace};
}

}  // namespace palimpsest
