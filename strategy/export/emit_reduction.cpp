#include "autodiff/operations/reduction.h"
#include "strategy/export/emitters.h"

/// Reductions over axes. Floating sums are accumulated in f64, as the engine does.
namespace palimpsest {
namespace {

/// The loops of a reduction: over the results, and for each over the elements that it reduces.
class Reduction {
 public:
  explicit Reduction(const CNode& node)
      : Reduction(node, node.attributes.as<ReduceAttributes>().mask) {}

  const CLoops& results() const { return results_; }
  const CLoops& elements() const { return elements_; }
  std::int64_t count() const { return count_; }
  /// The element that the inner loops are at.
  std::string x() const { return "x0[" + sum_of(results_.offset(1), elements_.offset(0)) + "]"; }
  /// The first element of the current result.
  std::string first() const { return "x0[" + results_.offset(1) + "]"; }
  std::string result() const { return results_.offset(0); }

  /// Adds inner loops with one line or more for each element, with `$x`.
  void each(CBody& body, std::string_view lines) const {
    elements_.open(body);
    body.add(lines, {{"x", x()}});
    elements_.close(body);
  }

 private:
  Reduction(const CNode& node, const AxisMask& mask)
      : results_(part(node, mask, false),
                 {strides_of(part(node, mask, false)), part_strides(node, mask, false)}),
        elements_(part(node, mask, true), {part_strides(node, mask, true)}, "j"),
        count_(part(node, mask, true).elements()) {}

  /// The reduced or the other axes.
  static Shape part(const CNode& node, const AxisMask& mask, bool reduced) {
    const Shape& shape = node.input_shape();
    Shape result;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      if (mask[static_cast<std::size_t>(axis)] == reduced) result.push_back(shape[axis]);
    }
    return result;
  }
  static Strides part_strides(const CNode& node, const AxisMask& mask, bool reduced) {
    const Shape& shape = node.input_shape();
    const Strides dense = strides_of(shape);
    Strides result{};
    std::size_t count = 0;
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(shape.rank()); ++axis) {
      if (mask[axis] == reduced) result[count++] = dense[axis];
    }
    return result;
  }

  CLoops results_;
  CLoops elements_;
  std::int64_t count_;
};

/// A fold: `before` declares the total, `each` adds `$x`, and `after` is the result.
void emit_fold(const CNode& node, CBody& body, std::string_view before, std::string_view each,
               std::string_view after) {
  const Reduction reduction(node);
  reduction.results().open(body);
  body.add(before);
  reduction.each(body, each);
  body.add("y0[$at] = $result;", {{"at", reduction.result()}, {"result", std::string(after)}});
  reduction.results().close(body);
}

void emit_sum(const CNode& node, CBody& body) {
  const DType dtype = node.dtype();
  if (dtype == DType::i64) {
    emit_fold(node, body, "uint64_t total = 0;", "total += (uint64_t)$x;", "(int64_t)total");
  } else if (dtype == DType::i32) {
    emit_fold(node, body, "uint32_t total = 0;", "total += (uint32_t)$x;", "(int32_t)total");
  } else {
    emit_fold(node, body, "double total = 0;", "total += $x;", "(" + node.type() + ")total");
  }
}

void emit_mean(const CNode& node, CBody& body) {
  const double count = node.attributes.as<ReduceAttributes>().number;
  emit_fold(node, body, "double total = 0;", "total += $x;",
            "(" + node.type() + ")(total / " + c_literal(count, DType::f64) + ")");
}

void emit_prod(const CNode& node, CBody& body) {
  if (is_floating(node.dtype())) {
    emit_fold(node, body, "double total = 1;", "total *= $x;", "(" + node.type() + ")total");
  } else {
    emit_fold(node, body, "uint64_t total = 1;", "total *= (uint64_t)$x;",
              "(" + node.type() + ")total");
  }
}

/// The first largest or smallest element and its position; the first NaN, if there is one.
void emit_extreme(const CNode& node, CBody& body, const char* sign) {
  const Reduction reduction(node);
  reduction.results().open(body);
  body.add(R"(
$T best = $first;
long place = 0;
long row = 0;
)",
           {{"T", node.type()}, {"first", reduction.first()}});
  reduction.elements().open(body);
  body.add("const $T x = $x;", {{"T", node.type()}, {"x", reduction.x()}});
  const bool may_be_nan = is_floating(node.dtype());
  body.open("if ($better)",
            {{"better", may_be_nan ? filled("x $s best || (x != x && best == best)", {{"s", sign}})
                                   : filled("x $s best", {{"s", sign}})}});
  body.add("best = x;\nplace = row;");
  body.close();
  body.add("++row;");
  reduction.elements().close(body);
  body.add("y0[$at] = best;\ny1[$at] = place;", {{"at", reduction.result()}});
  reduction.results().close(body);
}

void emit_variance(const CNode& node, CBody& body, bool root) {
  const Reduction reduction(node);
  const double divisor = node.attributes.as<ReduceAttributes>().number;
  reduction.results().open(body);
  // Differences from the first element keep the digits of elements that are far from 0.
  body.add("const double first = $first;\ndouble total = 0;", {{"first", reduction.first()}});
  reduction.each(body, "total += $x - first;");
  body.add("const double mean = first + total / $n;\ntotal = 0;",
           {{"n", c_literal(static_cast<double>(reduction.count()), DType::f64)}});
  reduction.each(body, "total += ($x - mean) * ($x - mean);");
  const std::string variance = "total / " + c_literal(divisor, DType::f64);
  body.add("y0[$at] = ($T)$result;",
           {{"at", reduction.result()},
            {"T", node.type()},
            {"result", root ? "sqrt(" + variance + ")" : "(" + variance + ")"}});
  reduction.results().close(body);
}

void emit_logsumexp(const CNode& node, CBody& body) {
  const Reduction reduction(node);
  const DType dtype = node.dtype();
  reduction.results().open(body);
  body.add("$T largest = -INFINITY;", {{"T", node.type()}});
  reduction.each(body, "if ($x > largest) largest = $x;");
  body.add("if (largest - largest != 0) largest = 0;  /* infinite */\ndouble total = 0;");
  reduction.each(body, "total += " + c_function("exp", dtype) + "($x - largest);");
  body.add("y0[$at] = ($T)(largest + log(total));",
           {{"at", reduction.result()}, {"T", node.type()}});
  reduction.results().close(body);
}

/// Powers are taken of |x|/largest, which are in range.
void emit_norm(const CNode& node, CBody& body) {
  const double p = node.attributes.as<ReduceAttributes>().number;
  if (p == 1) {
    emit_fold(node, body, "double total = 0;", "total += fabs((double)$x);",
              "(" + node.type() + ")total");
    return;
  }
  const Reduction reduction(node);
  reduction.results().open(body);
  body.add("double largest = 0;");
  reduction.each(body, R"(const double size = fabs((double)$x);
if (size > largest || size != size) largest = size;)");
  body.add("double result = largest;");
  body.open("if (largest > 0 && largest - largest == 0)");
  body.add("double total = 0;");
  const std::string power = c_literal(p, DType::f64);
  reduction.each(body, p == 2 ? std::string("total += ($x / largest) * ($x / largest);")
                              : "total += pow(fabs((double)$x) / largest, " + power + ");");
  body.add("result = largest * $root;",
           {{"root", p == 2 ? "sqrt(total)" : "pow(total, 1.0 / " + power + ")"}});
  body.close();
  body.add("y0[$at] = ($T)result;", {{"at", reduction.result()}, {"T", node.type()}});
  reduction.results().close(body);
}

}  // namespace

void add_reduction_emitters(CEmitters& emitters) {
  emitters["sum"] = {emit_sum};
  emitters["mean"] = {emit_mean};
  emitters["prod"] = {emit_prod};
  emitters["all"] = {[](const CNode& node, CBody& body) {
    emit_fold(node, body, "uint8_t total = 1;", "if (!$x) total = 0;", "total");
  }};
  emitters["any"] = {[](const CNode& node, CBody& body) {
    emit_fold(node, body, "uint8_t total = 0;", "if ($x) total = 1;", "total");
  }};
  emitters["max"] = {[](const CNode& node, CBody& body) { emit_extreme(node, body, ">"); }};
  emitters["min"] = {[](const CNode& node, CBody& body) { emit_extreme(node, body, "<"); }};
  emitters["variance"] = {[](const CNode& node, CBody& body) { emit_variance(node, body, false); }};
  emitters["standard_deviation"] = {
      [](const CNode& node, CBody& body) { emit_variance(node, body, true); }};
  emitters["logsumexp"] = {emit_logsumexp};
  emitters["norm"] = {emit_norm};
}

}  // namespace palimpsest
