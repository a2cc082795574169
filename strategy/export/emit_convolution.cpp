#include "autodiff/kernels/convolution.h"
#include "strategy/export/emitters.h"

/// The convolution and its two adjoints, as loops over taps and results. The range of results that
/// read inside the image is computed before the innermost loops, which have no conditions.
namespace palimpsest {
namespace {

constexpr const char* range_helpers =
    R"(/* The first result whose element is not before the image. */
static long @first_inside(long offset, long stride) {
  return offset >= 0 ? 0 : (stride - 1 - offset) / stride;
}

/* The end of the results whose element is not after the image. */
static long @end_inside(long offset, long stride, long input, long output) {
  const long end = offset >= input ? 0 : (input - 1 - offset) / stride + 1;
  return end < output ? end : output;
}
)";

/// The loops of one geometry. Axes of size 1 have no loops.
class Geometry {
 public:
  explicit Geometry(const CNode& node) : g_(node.attributes.as<ConvolutionGeometry>()) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const bool is_trivial = g_.input[axis] == 1 && g_.output[axis] == 1 && g_.kernel[axis] == 1 &&
                              g_.padding[axis] == 0;
      if (!is_trivial) axes_.push_back(axis);
    }
  }

  const ConvolutionGeometry& sizes() const { return g_; }
  std::int64_t group_channels() const { return g_.channels / g_.groups; }
  std::int64_t group_results() const { return g_.results / g_.groups; }

  /// Loops over the taps; declares the ranges of results that read inside.
  void open_taps(CBody& body) const {
    if (!axes_.empty()) body.use(range_helpers);
    for (const std::size_t a : axes_) {
      body.open("for (long t$a = 0; t$a < $n; ++t$a)", {{"a", a}, {"n", g_.kernel[a]}});
    }
    for (const std::size_t a : axes_) {
      body.add(R"(
const long at$a = t$a * $dilation - $padding;
const long begin$a = @first_inside(at$a, $stride);
const long end$a = @end_inside(at$a, $stride, $input, $output);
)",
               {{"a", a},
                {"dilation", g_.dilation[a]},
                {"padding", g_.padding[a]},
                {"stride", g_.stride[a]},
                {"input", g_.input[a]},
                {"output", g_.output[a]}});
    }
  }
  /// Loops over the results in these ranges, except those of the last axis.
  void open_rows(CBody& body) const {
    for (std::size_t i = 0; i + 1 < axes_.size(); ++i) open_results(body, axes_[i]);
  }
  void open_last(CBody& body) const {
    if (!axes_.empty()) open_results(body, axes_.back());
  }
  void close_taps(CBody& body) const { close(body, axes_.size()); }
  void close_rows(CBody& body) const { close(body, axes_.empty() ? 0 : axes_.size() - 1); }
  void close_last(CBody& body) const { close(body, axes_.empty() ? 0 : 1); }

  std::string tap() const {
    return index(g_.kernel, [](const std::string& a) { return "t" + a; });
  }
  std::string result() const {
    return index(g_.output, [](const std::string& a) { return "q" + a; });
  }
  std::string element() const {
    return index(g_.input, [&](const std::string& a) {
      return "(q" + a + " * " + std::to_string(g_.stride[static_cast<std::size_t>(a[0] - '0')]) +
             " + at" + a + ")";
    });
  }

 private:
  static void open_results(CBody& body, std::size_t a) {
    body.open("for (long q$a = begin$a; q$a < end$a; ++q$a)", {{"a", a}});
  }
  static void close(CBody& body, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) body.close();
  }
  template <class Of>
  std::string index(const ConvolutionGeometry::Sizes& sizes, Of of) const {
    std::string text;
    for (const std::size_t a : axes_) {
      const std::string here = of(std::to_string(a));
      text = text.empty() ? here : "(" + text + ") * " + std::to_string(sizes[a]) + " + " + here;
    }
    return text.empty() ? "0" : text;
  }

  const ConvolutionGeometry& g_;
  std::vector<std::size_t> axes_;
};

/// Pointers to the planes of x, the results and the weights of a batch entry, a result and a
/// channel of its group. Null pointers of `x`, `y` and `weight` are not declared.
void add_planes(CBody& body, const Geometry& geometry, const std::string& type,
                const std::string& x, const std::string& y, const std::string& weight) {
  const ConvolutionGeometry& g = geometry.sizes();
  if (!x.empty()) {
    body.add("$x = $from + (b * $channels + o / $results * $group + c) * $size;",
             {{"x", type},
              {"from", x},
              {"channels", g.channels},
              {"results", geometry.group_results()},
              {"group", geometry.group_channels()},
              {"size", g.input_size()}});
  }
  if (!y.empty()) {
    body.add("$y = $from + (b * $results + o) * $size;",
             {{"y", type}, {"from", y}, {"results", g.results}, {"size", g.output_size()}});
  }
  if (!weight.empty()) {
    body.add("$weight = $from + (o * $group + c) * $taps;", {{"weight", type},
                                                             {"from", weight},
                                                             {"group", geometry.group_channels()},
                                                             {"taps", g.taps()}});
  }
}

std::string pointer(const CNode& node, const char* name, bool is_read) {
  return (is_read ? "const " : "") + node.type() + " *const " + name;
}

void open_batch_and_results(CBody& body, const ConvolutionGeometry& g) {
  body.open("for (long b = 0; b < $n; ++b)", {{"n", g.batch}});
  body.open("for (long o = 0; o < $n; ++o)", {{"n", g.results}});
}

void emit_convolution(const CNode& node, CBody& body) {
  const Geometry geometry(node);
  const ConvolutionGeometry& g = geometry.sizes();
  open_batch_and_results(body, g);
  add_planes(body, geometry, pointer(node, "y", false), "", "y0", "");
  body.add("for (long i = 0; i < $n; ++i) y[i] = $bias;",
           {{"n", g.output_size()}, {"bias", node.inputs.size() > 2 ? "x2[o]" : "0"}});
  body.open("for (long c = 0; c < $n; ++c)", {{"n", geometry.group_channels()}});
  add_planes(body, geometry, pointer(node, "x", true), "x0", "", "");
  add_planes(body, geometry, pointer(node, "weight", true), "", "", "x1");
  geometry.open_taps(body);
  body.add("const $T factor = weight[$tap];", {{"T", node.type()}, {"tap", geometry.tap()}});
  geometry.open_rows(body);
  geometry.open_last(body);
  body.add("y[$result] += factor * x[$element];",
           {{"result", geometry.result()}, {"element", geometry.element()}});
  geometry.close_last(body);
  geometry.close_rows(body);
  geometry.close_taps(body);
  for (int i = 0; i < 3; ++i) body.close();
}

void emit_transposed(const CNode& node, CBody& body) {
  const Geometry geometry(node);
  const ConvolutionGeometry& g = geometry.sizes();
  body.open("for (long i = 0; i < $n; ++i)", {{"n", node.output_shape().elements()}});
  body.add("y0[i] = $bias;", {{"bias", node.inputs.size() > 2 ? filled("x2[i / $size % $channels]",
                                                                       {{"size", g.input_size()},
                                                                        {"channels", g.channels}})
                                                              : std::string("0")}});
  body.close();
  open_batch_and_results(body, g);
  add_planes(body, geometry, pointer(node, "y", true), "", "x0", "");
  body.open("for (long c = 0; c < $n; ++c)", {{"n", geometry.group_channels()}});
  add_planes(body, geometry, pointer(node, "x", false), "y0", "", "");
  add_planes(body, geometry, pointer(node, "weight", true), "", "", "x1");
  geometry.open_taps(body);
  body.add("const $T factor = weight[$tap];", {{"T", node.type()}, {"tap", geometry.tap()}});
  geometry.open_rows(body);
  geometry.open_last(body);
  body.add("x[$element] += factor * y[$result];",
           {{"result", geometry.result()}, {"element", geometry.element()}});
  geometry.close_last(body);
  geometry.close_rows(body);
  geometry.close_taps(body);
  for (int i = 0; i < 3; ++i) body.close();
}

/// Rows are summed in the dtype, and their sums in f64, since there may be many.
void emit_weight(const CNode& node, CBody& body) {
  const Geometry geometry(node);
  const ConvolutionGeometry& g = geometry.sizes();
  body.open("for (long o = 0; o < $n; ++o)", {{"n", g.results}});
  body.open("for (long c = 0; c < $n; ++c)", {{"n", geometry.group_channels()}});
  add_planes(body, geometry, pointer(node, "weight", false), "", "", "y0");
  geometry.open_taps(body);
  body.add("double total = 0;");
  body.open("for (long b = 0; b < $n; ++b)", {{"n", g.batch}});
  add_planes(body, geometry, pointer(node, "x", true), "x0", "", "");
  add_planes(body, geometry, pointer(node, "y", true), "", "x1", "");
  geometry.open_rows(body);
  body.add("$T row = 0;", {{"T", node.type()}});
  geometry.open_last(body);
  body.add("row += y[$result] * x[$element];",
           {{"result", geometry.result()}, {"element", geometry.element()}});
  geometry.close_last(body);
  body.add("total += row;");
  geometry.close_rows(body);
  body.close();
  body.add("weight[$tap] = ($T)total;", {{"T", node.type()}, {"tap", geometry.tap()}});
  geometry.close_taps(body);
  body.close();
  body.close();
}

}  // namespace

void add_convolution_emitters(CEmitters& emitters) {
  emitters["convolution"] = {emit_convolution};
  emitters["transposed_convolution"] = {emit_transposed};
  emitters["convolution_weight"] = {emit_weight};
}

}  // namespace palimpsest
