#include "autodiff/operations/pool_windows.h"
#include "strategy/export/emitters.h"

/// Pooling, as loops over windows and their elements.
namespace palimpsest {
namespace {

/// The windows of the planes of an image.
class Windows {
 public:
  explicit Windows(const CNode& node) : pool_(node.attributes.as<PoolAttributes>()) {
    for (std::size_t a = 0; a < 3; ++a) {
      const PoolAxis& axis = pool_.axes[a];
      if (axis.input != 1 || axis.output != 1 || axis.kernel != 1 || axis.padding != 0) {
        axes_.push_back(a);
      }
    }
  }

  std::int64_t input_size() const { return pool_.input_size(); }
  std::int64_t output_size() const { return pool_.output_size(); }

  /// Loops over windows, with `begin`, `end` and `count` along each axis.
  void open(CBody& body) const {
    for (const std::size_t a : axes_) {
      body.open("for (long q$a = 0; q$a < $n; ++q$a)", {{"a", a}, {"n", pool_.axes[a].output}});
      add_span(body, a);
    }
  }
  void close(CBody& body) const {
    for (std::size_t i = 0; i < axes_.size(); ++i) body.close();
  }
  void open_elements(CBody& body) const {
    for (const std::size_t a : axes_) {
      const std::int64_t step = pool_.axes[a].adaptive ? 1 : pool_.axes[a].dilation;
      body.open("for (long i$a = begin$a; i$a < end$a; i$a += $step)", {{"a", a}, {"step", step}});
    }
  }
  std::string window() const {
    return index("q", [&](std::size_t a) { return pool_.axes[a].output; });
  }
  std::string element() const {
    return index("i", [&](std::size_t a) { return pool_.axes[a].input; });
  }
  std::string count() const {
    std::string text;
    for (const std::size_t a : axes_) {
      text += (text.empty() ? "" : " * ") + std::string("(double)count") + std::to_string(a);
    }
    return text.empty() ? "1" : text;
  }

  /// Declares the divisors too.
  Windows& with_counts() {
    counts_ = true;
    return *this;
  }

 private:
  void add_span(CBody& body, std::size_t a) const {
    const PoolAxis& axis = pool_.axes[a];
    if (axis.adaptive) {
      body.add(R"(
const long begin$a = q$a * $input / $output;
const long end$a = ((q$a + 1) * $input + $output - 1) / $output;
)",
               {{"a", a}, {"input", axis.input}, {"output", axis.output}});
      if (counts_) body.add("const long count$a = end$a - begin$a;", {{"a", a}});
      return;
    }
    body.add(R"(
const long first$a = q$a * $stride - $padding;
const long last$a = first$a + $extent < $most ? first$a + $extent : $most;
const long skipped$a = first$a < 0 ? ($dilation - 1 - first$a) / $dilation : 0;
const long begin$a = first$a + skipped$a * $dilation;
const long end$a = last$a < $input ? last$a : $input;
)",
             {{"a", a},
              {"stride", axis.stride},
              {"padding", axis.padding},
              {"extent", axis.extent()},
              {"most", axis.input + axis.padding},
              {"dilation", axis.dilation},
              {"input", axis.input}});
    if (!counts_) return;
    body.add(pool_.include_padding ? "const long count$a = last$a - first$a;"
                                   : "const long count$a = end$a - begin$a;",
             {{"a", a}});
  }
  template <class Size>
  std::string index(const std::string& letter, Size size) const {
    std::string text;
    for (const std::size_t a : axes_) {
      const std::string here = letter + std::to_string(a);
      text = text.empty() ? here : "(" + text + ") * " + std::to_string(size(a)) + " + " + here;
    }
    return text.empty() ? "0" : text;
  }

  const PoolAttributes& pool_;
  std::vector<std::size_t> axes_;
  bool counts_ = false;
};

std::int64_t planes_of(const Shape& shape) { return shape[0] * shape[1]; }

/// Loops over planes and windows; `place` is the first largest element of x in each window.
void open_maxima(const CNode& node, CBody& body, const Windows& windows) {
  windows.open(body);
  body.add("$T best = 0;\nlong place = -1;", {{"T", node.type()}});
  windows.open_elements(body);
  body.add(R"(
const $T number = x[$element];
if (place < 0 || number > best || (number != number && best == best)) {
  best = number;
  place = $element;
}
)",
           {{"T", node.type()}, {"element", windows.element()}});
  windows.close(body);
}

void open_planes(const CNode& node, CBody& body, std::int64_t planes, std::int64_t x_size) {
  body.open("for (long plane = 0; plane < $n; ++plane)", {{"n", planes}});
  body.add("const $T *const x = x0 + plane * $size;", {{"T", node.type()}, {"size", x_size}});
}

void emit_max_pool(const CNode& node, CBody& body) {
  const Windows windows(node);
  open_planes(node, body, planes_of(node.output_shape()), windows.input_size());
  open_maxima(node, body, windows);
  body.add("y0[plane * $size + $window] = best;",
           {{"size", windows.output_size()}, {"window", windows.window()}});
  windows.close(body);
  body.close();
}

void emit_pick(const CNode& node, CBody& body) {
  const Windows windows(node);
  open_planes(node, body, planes_of(node.output_shape()), windows.input_size());
  open_maxima(node, body, windows);
  body.add("y0[plane * $size + $window] = x1[plane * $input + place];",
           {{"size", windows.output_size()},
            {"window", windows.window()},
            {"input", windows.input_size()}});
  windows.close(body);
  body.close();
}

void emit_max_pool_adjoint(const CNode& node, CBody& body) {
  const Windows windows(node);
  body.add("for (long i = 0; i < $n; ++i) y0[i] = 0;", {{"n", node.output_shape().elements()}});
  open_planes(node, body, planes_of(node.output_shape()), windows.input_size());
  open_maxima(node, body, windows);
  body.add("y0[plane * $input + place] += x1[plane * $size + $window];",
           {{"size", windows.output_size()},
            {"window", windows.window()},
            {"input", windows.input_size()}});
  windows.close(body);
  body.close();
}

void emit_average_pool(const CNode& node, CBody& body) {
  const Windows windows = Windows(node).with_counts();
  open_planes(node, body, planes_of(node.output_shape()), windows.input_size());
  windows.open(body);
  body.add("$T total = 0;", {{"T", node.type()}});
  windows.open_elements(body);
  body.add("total += x[$element];", {{"element", windows.element()}});
  windows.close(body);
  body.add("y0[plane * $size + $window] = total / ($T)($count);", {{"size", windows.output_size()},
                                                                   {"window", windows.window()},
                                                                   {"T", node.type()},
                                                                   {"count", windows.count()}});
  windows.close(body);
  body.close();
}

void emit_average_pool_adjoint(const CNode& node, CBody& body) {
  const Windows windows = Windows(node).with_counts();
  body.add("for (long i = 0; i < $n; ++i) y0[i] = 0;", {{"n", node.output_shape().elements()}});
  open_planes(node, body, planes_of(node.output_shape()), windows.output_size());
  windows.open(body);
  body.add("const $T share = x[$window] / ($T)($count);",
           {{"T", node.type()}, {"window", windows.window()}, {"count", windows.count()}});
  windows.open_elements(body);
  body.add("y0[plane * $size + $element] += share;",
           {{"size", windows.input_size()}, {"element", windows.element()}});
  windows.close(body);
  windows.close(body);
  body.close();
}

}  // namespace

void add_pool_emitters(CEmitters& emitters) {
  emitters["max_pool"] = {emit_max_pool};
  emitters["max_pool_pick"] = {emit_pick};
  emitters["max_pool_adjoint"] = {emit_max_pool_adjoint};
  emitters["average_pool"] = {emit_average_pool};
  emitters["average_pool_adjoint"] = {emit_average_pool_adjoint};
}

}  // namespace palimpsest
