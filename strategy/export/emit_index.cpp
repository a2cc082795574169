#include "autodiff/operations/lines.h"
#include "autodiff/operations/places.h"
#include "strategy/export/emitters.h"

/// Reading and writing at positions given by a tensor. A position out of range ends the exported
/// function with a status.
namespace palimpsest {
namespace {

/// Loops over rows (outer, count) and columns of x, with `place` the position of the element.
void emit_rows(CBody& body, const LineShape& line, std::int64_t count, bool per_element,
               std::string_view each) {
  if (count == 0) return;
  body.may_fail();
  body.open("for (long row = 0; row < $n; ++row)", {{"n", line.outer * count}});
  body.open("for (long i = 0; i < $n; ++i)", {{"n", line.inner}});
  const std::string index = per_element ? filled("row * $inner + i", {{"inner", line.inner}})
                                        : filled("row % $count", {{"count", count}});
  body.add(R"(
const int64_t place = (int64_t)x1[$index];
if (place < 0 || place >= $size) return @@OUT_OF_RANGE;
)",
           {{"index", index}, {"size", line.size}});
  body.add(each, {{"block", filled("(row / $count * $size + place) * $inner + i",
                                   {{"count", count}, {"size", line.size}, {"inner", line.inner}})},
                  {"element", filled("row * $inner + i", {{"inner", line.inner}})}});
  body.close();
  body.close();
}

int axis_of(const CNode& node) { return node.attributes.as<IndexAttributes>().axis; }

/// Reads `count` positions from each line of x.
void emit_read(const CNode& node, CBody& body, std::int64_t count, bool per_element) {
  emit_rows(body, LineShape(node.input_shape(), axis_of(node)), count, per_element,
            "y0[$element] = x0[$block];");
}

/// Statement that adds an element of input `from` to the output.
std::string addition(const CNode& node, std::string_view from) {
  const std::string type = node.type();
  const std::string element = std::string(from) + "[$element]";
  if (is_floating(node.dtype())) return "y0[$block] += " + element + ";";
  return "y0[$block] = (" + type + ")((u" + type + ")y0[$block] + (u" + type + ")" + element + ");";
}

/// Adds `count` rows of x to zeros.
void emit_add(const CNode& node, CBody& body, std::int64_t count, bool per_element) {
  body.add("for (long i = 0; i < $n; ++i) y0[i] = 0;", {{"n", node.output_shape().elements()}});
  emit_rows(body, LineShape(node.output_shape(), axis_of(node)), count, per_element,
            addition(node, "x0"));
}

/// Writes or adds, as `each` says, `count` rows of the source x2 to a copy of x.
void emit_write(const CNode& node, CBody& body, std::int64_t count, bool per_element,
                std::string_view each) {
  body.add("if (y0 != x0) memcpy(y0, x0, $n * sizeof(*y0));",
           {{"n", node.output_shape().elements()}});
  emit_rows(body, LineShape(node.output_shape(), axis_of(node)), count, per_element, each);
}

void emit_one_hot(const CNode& node, CBody& body) {
  const std::int64_t classes = node.output_shape()[axis_of(node)];
  body.may_fail();
  body.open("for (long i = 0; i < $n; ++i)", {{"n", node.input_shape().elements()}});
  body.add(R"(
const int64_t place = (int64_t)x0[i];
if (place < 0 || place >= $classes) return @@OUT_OF_RANGE;
for (long c = 0; c < $classes; ++c) y0[i * $classes + c] = c == place;
)",
           {{"classes", classes}});
  body.close();
}

int takes_over_first(const NodeView&, std::size_t) { return 0; }

}  // namespace

void add_index_emitters(CEmitters& emitters) {
  emitters["gather"] = {[](const CNode& node, CBody& body) {
    emit_read(node, body, node.output_shape()[axis_of(node)], true);
  }};
  emitters["index_select"] = {[](const CNode& node, CBody& body) {
    emit_read(node, body, node.input_shape(1).elements(), false);
  }};
  emitters["scatter_add"] = {[](const CNode& node, CBody& body) {
    emit_add(node, body, node.input_shape()[axis_of(node)], true);
  }};
  emitters["index_add"] = {[](const CNode& node, CBody& body) {
    emit_add(node, body, node.input_shape(1).elements(), false);
  }};
  emitters["one_hot"] = {emit_one_hot};
  const auto writes = [&](const char* operation, bool per_element, bool adds) {
    emitters[operation] = {[=](const CNode& node, CBody& body) {
                             const std::int64_t count = per_element
                                                            ? node.input_shape(2)[axis_of(node)]
                                                            : node.input_shape(1).elements();
                             emit_write(node, body, count, per_element,
                                        adds ? addition(node, "x2") : "y0[$block] = x2[$element];");
                           },
                           nullptr, takes_over_first};
  };
  writes("scatter", true, false);
  writes("index_copy", false, false);
  writes("scatter_sum", true, true);
  writes("index_sum", false, true);
}

}  // namespace palimpsest
