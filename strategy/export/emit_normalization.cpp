#include "autodiff/operations/normalize.h"
#include "strategy/export/emitters.h"

/// Normalizations, with statistics in f64. x is viewed as (batch, groups, channels, spatial).
namespace palimpsest {
namespace {

/// Loops over the elements that share statistics, with `at` the offset of each in x and `channel`
/// that in the weight. `x` is the name of x.
void open_elements(CBody& body, const Normalization& n) {
  if (n.over_batch) body.open("for (long b = 0; b < $n; ++b)", {{"n", n.batch}});
  body.open("for (long c = 0; c < $n; ++c)", {{"n", n.channels}});
  body.add("const long channel = g * $channels + c;", {{"channels", n.channels}});
  body.open("for (long s = 0; s < $n; ++s)", {{"n", n.spatial}});
  body.add("const long at = (b * $width + channel) * $spatial + s;",
           {{"width", n.groups * n.channels}, {"spatial", n.spatial}});
}

void close_elements(CBody& body, const Normalization& n) {
  for (int i = 0; i < (n.over_batch ? 3 : 2); ++i) body.close();
}

/// Adds `term` for every element.
void add_sum(CBody& body, const Normalization& n, const std::string& lines) {
  open_elements(body, n);
  body.add(lines, {});
  close_elements(body, n);
}

void open_groups(CBody& body, const Normalization& n) {
  if (!n.over_batch) body.open("for (long b = 0; b < $n; ++b)", {{"n", n.batch}});
  body.open("for (long g = 0; g < $n; ++g)", {{"n", n.groups}});
}

void close_groups(CBody& body, const Normalization& n) {
  for (int i = 0; i < (n.over_batch ? 1 : 2); ++i) body.close();
}

/// Declares `mean`, `variance` and `scale` of the current group, from x with this name.
void add_statistics(CBody& body, const Normalization& n, const std::string& x) {
  const std::string count = c_literal(static_cast<double>(n.count()), DType::f64);
  body.add("double mean = 0;\ndouble variance = 0;");
  if (n.centered) {
    // Differences from the first element keep the digits of elements that are far from 0.
    body.add("const double first = $x[($b + g) * $size];",
             {{"x", x},
              {"b", n.over_batch ? std::string("0") : filled("b * $n", {{"n", n.groups}})},
              {"size", n.channels * n.spatial}});
    add_sum(body, n, "mean += " + x + "[at] - first;");
    body.add("mean = first + mean / $n;", {{"n", count}});
  }
  add_sum(body, n, "variance += (" + x + "[at] - mean) * (" + x + "[at] - mean);");
  body.add("variance /= $n;\nconst double scale = 1 / sqrt(variance + $epsilon);",
           {{"n", count}, {"epsilon", c_literal(n.epsilon, DType::f64)}});
}

void emit_normalization(const CNode& node, CBody& body) {
  const auto& n = node.attributes.as<Normalization>();
  const DType dtype = node.inputs[0].dtype;
  open_groups(body, n);
  add_statistics(body, n, "x0");
  if (n.over_batch) {
    body.add("y1[g] = ($M)mean;\ny2[g] = ($V)variance;",
             {{"M", c_type(node.dtype(1))}, {"V", c_type(node.dtype(2))}});
  }
  open_elements(body, n);
  body.add("y0[at] = ($T)((x0[at] - mean) * scale$weight$bias);",
           {{"T", c_type(dtype)},
            {"weight", node.inputs.size() > 1 ? " * x1[channel]" : ""},
            {"bias", node.inputs.size() > 2 ? " + x2[channel]" : ""}});
  close_elements(body, n);
  close_groups(body, n);
}

/// The workspace has mean and scale of each group of statistics, if weights need them again.
Bytes adjoint_workspace(const NodeView& node, int) {
  const auto& n = node.attributes().as<Normalization>();
  if (node.output_count() < 2) return 0;
  return (n.over_batch ? 1 : n.batch) * n.groups * 2 * static_cast<Bytes>(sizeof(double));
}

void emit_adjoint(const CNode& node, CBody& body) {
  const auto& n = node.attributes.as<Normalization>();
  const bool weighted = node.inputs.size() > 2;
  const bool has_sums = node.outputs.size() > 1;
  const std::string slope = weighted ? "x0[at] * x2[channel]" : "x0[at]";
  const std::string count = c_literal(static_cast<double>(n.count()), DType::f64);
  if (has_sums) body.add("double *const statistics = (double *)w;");
  open_groups(body, n);
  add_statistics(body, n, "x1");
  const std::string group =
      n.over_batch ? std::string("g") : filled("(b * $n + g)", {{"n", n.groups}});
  if (has_sums) {
    body.add("statistics[2 * $g] = mean;\nstatistics[2 * $g + 1] = scale;", {{"g", group}});
  }
  body.add("double along = 0;\ndouble total = 0;");
  add_sum(body, n, "total += " + slope + ";\nalong += " + slope + " * ((x1[at] - mean) * scale);");
  body.add(n.centered ? "total /= $n;\nalong /= $n;" : "total = 0;\nalong /= $n;", {{"n", count}});
  open_elements(body, n);
  body.add("y0[at] = ($T)(scale * ($slope - total - (x1[at] - mean) * scale * along));",
           {{"T", node.type()}, {"slope", slope}});
  close_elements(body, n);
  close_groups(body, n);
  if (!has_sums) return;
  body.open("for (long g = 0; g < $n; ++g)", {{"n", n.groups}});
  body.open("for (long c = 0; c < $n; ++c)", {{"n", n.channels}});
  const bool has_bias = node.outputs.size() > 2;
  body.add("const long channel = g * $n + c;\ndouble scaled = 0;", {{"n", n.channels}});
  if (has_bias) body.add("double plain = 0;");
  body.open("for (long b = 0; b < $n; ++b)", {{"n", n.batch}});
  body.open("for (long s = 0; s < $n; ++s)", {{"n", n.spatial}});
  body.add(R"(
const long at = (b * $width + channel) * $spatial + s;
scaled += x0[at] * ((x1[at] - statistics[2 * $g]) * statistics[2 * $g + 1]);
)",
           {{"width", n.groups * n.channels}, {"spatial", n.spatial}, {"g", group}});
  if (has_bias) body.add("plain += x0[at];");
  body.close();
  body.close();
  body.add("y1[channel] = ($T)scaled;", {{"T", c_type(node.dtype(1))}});
  if (has_bias) body.add("y2[channel] = ($T)plain;", {{"T", c_type(node.dtype(2))}});
  body.close();
  body.close();
}

}  // namespace

void add_normalization_emitters(CEmitters& emitters) {
  for (const char* name : {"layer_norm", "rms_norm", "group_norm", "batch_norm"}) {
    emitters[name] = {emit_normalization};
  }
  emitters["normalization_adjoint"] = {emit_adjoint, adjoint_workspace};
}

}  // namespace palimpsest
