#include "autodiff/operations/attributes.h"
#include "autodiff/operations/lines.h"
#include "strategy/export/emitters.h"

/// Softmax and the losses of classification, along the lines of an axis.
namespace palimpsest {
namespace {

/// Loops over the lines along an axis, with `line` the number of each and `first` its first
/// element.
void open_lines(CBody& body, const LineShape& line) {
  body.open("for (long o = 0; o < $n; ++o)", {{"n", line.outer}});
  body.open("for (long i = 0; i < $n; ++i)", {{"n", line.inner}});
  body.add("const long first = o * $n + i;", {{"n", line.size * line.inner}});
}

void close_lines(CBody& body) {
  body.close();
  body.close();
}

/// Adds lines for each element of a line, whose offset is `at`.
void each(CBody& body, const LineShape& line, std::string_view lines) {
  body.open("for (long k = 0; k < $n; ++k)", {{"n", line.size}});
  body.add("const long at = first + k * $inner;", {{"inner", line.inner}});
  body.add(lines);
  body.close();
}

/// Declares `largest`, the largest element of the line of `x`.
void add_largest(const CNode& node, CBody& body, const LineShape& line, const std::string& x) {
  body.add("$T largest = $x[first];", {{"T", node.type()}, {"x", x}});
  each(body, line,
       "if (" + x + "[at] > largest || " + x + "[at] != " + x + "[at]) largest = " + x + "[at];");
}

LineShape line_of(const CNode& node) {
  return {node.output_shape(), node.attributes.as<AxisAttributes>().axis};
}

void emit_softmax(const CNode& node, CBody& body) {
  const LineShape line = line_of(node);
  open_lines(body, line);
  add_largest(node, body, line, "x0");
  body.add("double total = 0;");
  each(body, line,
       filled("y0[at] = $exp(x0[at] - largest);\ntotal += y0[at];",
              {{"exp", c_function("exp", node.dtype())}}));
  each(body, line, "y0[at] = (" + node.type() + ")(y0[at] / total);");
  close_lines(body);
}

void emit_log_softmax(const CNode& node, CBody& body) {
  const LineShape line = line_of(node);
  open_lines(body, line);
  add_largest(node, body, line, "x0");
  body.add("double total = 0;");
  each(body, line,
       filled("total += $exp(x0[at] - largest);", {{"exp", c_function("exp", node.dtype())}}));
  body.add("const double shift = log(total);");
  each(body, line, "y0[at] = (" + node.type() + ")((x0[at] - largest) - shift);");
  close_lines(body);
}

void emit_softmax_adjoint(const CNode& node, CBody& body) {
  const LineShape line = line_of(node);
  open_lines(body, line);
  body.add("double total = 0;");
  each(body, line, "total += (double)x0[at] * x1[at];");
  each(body, line, "y0[at] = (" + node.type() + ")(x1[at] * (x0[at] - total));");
  close_lines(body);
}

void emit_log_softmax_adjoint(const CNode& node, CBody& body) {
  const LineShape line = line_of(node);
  open_lines(body, line);
  body.add("double total = 0;");
  each(body, line, "total += x0[at];");
  each(body, line,
       filled("y0[at] = ($T)(x0[at] - $exp(x1[at]) * total);",
              {{"T", node.type()}, {"exp", c_function("exp", node.dtype())}}));
  close_lines(body);
}

/// Declares the class of the line, and whether it is `counted`. A class out of range ends the
/// function.
void add_class(const CNode& node, CBody& body, const LineShape& line) {
  const auto& attributes = node.attributes.as<ClassAttributes>();
  body.may_fail();
  body.add("const long line = o * $inner + i;\nconst int64_t choice = (int64_t)x1[line];",
           {{"inner", line.inner}});
  if (attributes.ignored) {
    body.add("const int counted = choice != $ignored;", {{"ignored", *attributes.ignored}});
  } else {
    body.add("const int counted = 1;");
  }
  body.add("if (counted && (choice < 0 || choice >= $n)) return @@OUT_OF_RANGE;",
           {{"n", line.size}});
}

void emit_class_loss(const CNode& node, CBody& body, bool from_logits) {
  const auto& attributes = node.attributes.as<ClassAttributes>();
  const LineShape line(node.input_shape(), attributes.axis);
  const DType dtype = node.inputs[0].dtype;
  open_lines(body, line);
  add_class(node, body, line);
  body.open("if (!counted)");
  body.add("y0[line] = 0;\ncontinue;");
  body.close();
  if (from_logits) {
    add_largest(node, body, line, "x0");
    body.add("double total = 0;");
    each(body, line,
         filled("total += $exp(x0[at] - largest);", {{"exp", c_function("exp", dtype)}}));
  } else {
    body.add("const $T largest = 0;\nconst double total = 1;", {{"T", node.type()}});
  }
  body.add("double score = $share * (x0[first + choice * $inner] - largest);",
           {{"share", c_literal(1 - attributes.smoothing, DType::f64)}, {"inner", line.inner}});
  if (attributes.smoothing != 0) {
    each(body, line,
         filled("score += $share * (x0[at] - largest);",
                {{"share",
                  c_literal(attributes.smoothing / static_cast<double>(line.size), DType::f64)}}));
  }
  body.add("y0[line] = ($T)(log(total) - score);", {{"T", node.type()}});
  close_lines(body);
}

/// Reads the logits before it writes the result, which may be in their memory.
void emit_class_adjoint(const CNode& node, CBody& body, bool from_logits) {
  const auto& attributes = node.attributes.as<ClassAttributes>();
  const LineShape line(node.output_shape(), attributes.axis);
  const DType dtype = node.dtype();
  open_lines(body, line);
  add_class(node, body, line);
  body.add("const $T factor = counted ? x0[line] : 0;", {{"T", node.type()}});
  const std::string spread =
      c_literal(attributes.smoothing / static_cast<double>(line.size), dtype);
  const std::string exp = c_function("exp", dtype);
  if (from_logits) {
    add_largest(node, body, line, "x2");
    body.add("double total = 0;");
    each(body, line, filled("total += $exp(x2[at] - largest);", {{"exp", exp}}));
    each(body, line,
         filled("y0[at] = factor * (($T)($exp(x2[at] - largest) / total) - $spread);",
                {{"T", node.type()}, {"exp", exp}, {"spread", spread}}));
  } else {
    each(body, line, filled("y0[at] = factor * -$spread;", {{"spread", spread}}));
  }
  body.add("if (counted) y0[first + choice * $inner] -= factor * $share;",
           {{"inner", line.inner}, {"share", c_literal(1 - attributes.smoothing, dtype)}});
  close_lines(body);
}

/// The logits, if the result has their type.
int takes_over_logits(const NodeView& node, std::size_t) {
  const ValueType logits = node.input(2);
  return logits.dtype == node.output().dtype ? 2 : -1;
}

}  // namespace

void add_softmax_emitters(CEmitters& emitters) {
  emitters["softmax"] = {emit_softmax, nullptr, first_alike_input};
  emitters["log_softmax"] = {emit_log_softmax, nullptr, first_alike_input};
  emitters["softmax_adjoint"] = {emit_softmax_adjoint, nullptr, first_alike_input};
  emitters["log_softmax_adjoint"] = {emit_log_softmax_adjoint, nullptr, first_alike_input};
  emitters["cross_entropy"] = {
      [](const CNode& node, CBody& body) { emit_class_loss(node, body, true); }};
  emitters["nll"] = {[](const CNode& node, CBody& body) { emit_class_loss(node, body, false); }};
  emitters["cross_entropy_adjoint"] = {
      [](const CNode& node, CBody& body) { emit_class_adjoint(node, body, true); }, nullptr,
      takes_over_logits};
  emitters["nll_adjoint"] = {
      [](const CNode& node, CBody& body) { emit_class_adjoint(node, body, false); }};
}

}  // namespace palimpsest
