#include "autodiff/operations/cumulative.h"
#include "autodiff/operations/lines.h"
#include "strategy/export/emitters.h"

/// Cumulative operations along an axis.
namespace palimpsest {
namespace {

/// Walks along every line. `before` declares the state, and `each` writes the element `$at`; its
/// position along the axis is `row`.
void emit_walk(const CNode& node, CBody& body, std::string_view before, std::string_view each) {
  const auto [axis, reverse] = node.attributes.as<CumulativeAttributes>();
  const LineShape line(node.output_shape(), axis);
  body.open("for (long o = 0; o < $n; ++o)", {{"n", line.outer}});
  body.open("for (long i = 0; i < $n; ++i)", {{"n", line.inner}});
  body.add(before);
  body.open(reverse ? "for (long row = $last; row >= 0; --row)"
                    : "for (long row = 0; row <= $last; ++row)",
            {{"last", line.size - 1}});
  body.add("const long at = (o * $n + row) * $inner + i;",
           {{"n", line.size}, {"inner", line.inner}});
  body.add(each);
  body.close();
  body.close();
  body.close();
}

void emit_cumsum(const CNode& node, CBody& body) {
  const std::string result = "y0[at] = (" + node.type() + ")total;";
  if (is_floating(node.dtype())) {
    emit_walk(node, body, "double total = 0;", "total += x0[at];\n" + result);
  } else {
    emit_walk(node, body, "uint64_t total = 0;", "total += (uint64_t)x0[at];\n" + result);
  }
}

void emit_cumprod(const CNode& node, CBody& body) {
  const std::string result = "y0[at] = (" + node.type() + ")total;";
  if (is_floating(node.dtype())) {
    emit_walk(node, body, "double total = 1;", "total *= x0[at];\n" + result);
  } else {
    emit_walk(node, body, "uint64_t total = 1;", "total *= (uint64_t)x0[at];\n" + result);
  }
}

/// The last of equal elements, and any NaN, counts.
void emit_cumulative_extreme(const CNode& node, CBody& body, const char* sign) {
  const bool may_be_nan = is_floating(node.dtype());
  const std::string before = node.type() + " best = 0;\nlong place = -1;";
  const std::string each =
      filled(R"(if (place < 0 || x0[at] $sign= best$nan) {
  best = x0[at];
  place = row;
}
y0[at] = best;
y1[at] = place;
)",
             {{"sign", sign}, {"nan", may_be_nan ? " || x0[at] != x0[at]" : ""}});
  emit_walk(node, body, before, each);
}

/// The largest term so far, and the sum of exponentials relative to it.
void emit_logcumsumexp(const CNode& node, CBody& body) {
  emit_walk(node, body, "double largest = -INFINITY;\ndouble total = 0;",
            filled(R"(const double term = x0[at];
if (term == largest) {
  total += 1;
} else if (term < largest) {
  total += exp(term - largest);
} else {
  total = total * exp(largest - term) + 1;
  largest = term;
}
y0[at] = ($T)(largest + log(total));)",
                   {{"T", node.type()}}));
}

void emit_recurrence(const CNode& node, CBody& body) {
  emit_walk(node, body, "double state = 0;\nint begun = 0;",
            filled(R"(state = (begun ? (double)x0[at] * state : 0) + (double)x1[at];
begun = 1;
y0[at] = ($T)state;)",
                   {{"T", node.type()}}));
}

}  // namespace

void add_cumulative_emitters(CEmitters& emitters) {
  emitters["cumsum"] = {emit_cumsum};
  emitters["cumprod"] = {emit_cumprod};
  emitters["cummax"] = {
      [](const CNode& node, CBody& body) { emit_cumulative_extreme(node, body, ">"); }};
  emitters["cummin"] = {
      [](const CNode& node, CBody& body) { emit_cumulative_extreme(node, body, "<"); }};
  emitters["logcumsumexp"] = {emit_logcumsumexp};
  emitters["linear_recurrence"] = {emit_recurrence};
}

}  // namespace palimpsest
