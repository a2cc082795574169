#include "autodiff/operations/attributes.h"
#include "autodiff/operations/triangle.h"
#include "strategy/export/emitters.h"

/// Operations that move elements.
namespace palimpsest {
namespace {

/// `to[…] = from[…]` for each element of a shape, with strides and offsets of both.
void emit_copy(CBody& body, const Shape& shape, const std::string& to, const Strides& to_strides,
               std::int64_t to_offset, const std::string& from, const Strides& from_strides,
               std::int64_t from_offset) {
  const CLoops loops(shape, {to_strides, from_strides});
  loops.open(body);
  body.add("$to[$i] = $from[$j];", {{"to", to},
                                    {"i", sum_of(std::to_string(to_offset), loops.offset(0))},
                                    {"from", from},
                                    {"j", sum_of(std::to_string(from_offset), loops.offset(1))}});
  loops.close(body);
}

/// Fills the whole output.
void emit_fill(const CNode& node, CBody& body, double number) {
  body.add("for (long i = 0; i < $n; ++i) y0[i] = $number;",
           {{"n", node.output_shape().elements()}, {"number", c_literal(number, node.dtype())}});
}

/// For operations that read each element from one position.
void emit_access(const CNode& node, CBody& body, const Access& access) {
  body.start_at(access.offset);
  emit_copy(body, node.output_shape(), "y0", strides_of(node.output_shape()), 0, "x0",
            access.strides, 0);
}

void emit_broadcast(const CNode& node, CBody& body) {
  emit_access(node, body, {broadcast_strides(node.input_shape(), node.output_shape()), 0});
}

void emit_permute(const CNode& node, CBody& body) {
  const Axes& axes = node.attributes.as<Axes>();
  const Strides dense = strides_of(node.input_shape());
  Access access;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    access.strides[i] = dense[static_cast<std::size_t>(axes[i])];
  }
  emit_access(node, body, access);
}

/// The positions of a smaller tensor in one of this shape.
Access places_in(const Shape& shape, const Places& places) {
  Access access{strides_of(shape)};
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(shape.rank()); ++axis) {
    access.offset += places.starts[axis] * access.strides[axis];
    access.strides[axis] *= places.steps[axis];
  }
  return access;
}

void emit_slice(const CNode& node, CBody& body) {
  emit_access(node, body, places_in(node.input_shape(), node.attributes.as<Places>()));
}

void emit_pad(const CNode& node, CBody& body) {
  const auto& [places, number] = node.attributes.as<PadAttributes>();
  emit_fill(node, body, number);
  const Access access = places_in(node.output_shape(), places);
  emit_copy(body, node.input_shape(), "y0", access.strides, access.offset, "x0",
            strides_of(node.input_shape()), 0);
}

void emit_concat(const CNode& node, CBody& body) {
  const auto& [axis, begins] = node.attributes.as<PartAttributes>();
  const Strides strides = strides_of(node.output_shape());
  std::int64_t covered = 0;
  for (const ValueType& part : node.inputs) covered += part.shape[axis];
  if (covered < node.output_shape()[axis]) emit_fill(node, body, 0);
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    emit_copy(body, node.input_shape(i), "y0", strides,
              begins[i] * strides[static_cast<std::size_t>(axis)], "x" + std::to_string(i),
              strides_of(node.input_shape(i)), 0);
  }
}

void emit_split(const CNode& node, CBody& body) {
  const auto& [axis, begins] = node.attributes.as<PartAttributes>();
  const Strides strides = strides_of(node.input_shape());
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    emit_copy(body, node.output_shape(i), "y" + std::to_string(i), strides_of(node.output_shape(i)),
              0, "x0", strides, begins[i] * strides[static_cast<std::size_t>(axis)]);
  }
}

void emit_roll(const CNode& node, CBody& body) {
  const auto& [axis, cut] = node.attributes.as<RollAttributes>();
  Shape shape = node.output_shape();
  const Strides strides = strides_of(shape);
  const std::int64_t row = strides[static_cast<std::size_t>(axis)];
  const std::int64_t rest = shape[axis] - cut;
  shape[axis] = cut;
  emit_copy(body, shape, "y0", strides, 0, "x0", strides, rest * row);
  shape[axis] = rest;
  emit_copy(body, shape, "y0", strides, cut * row, "x0", strides, 0);
}

void emit_triangle(const CNode& node, CBody& body) {
  const auto& [upper, diagonal, factor, on_diagonal] = node.attributes.as<TriangleAttributes>();
  const Shape& shape = node.output_shape();
  const std::int64_t n = shape.size(-1);
  const bool inverts = factor != 1 || on_diagonal != 1;
  const DType dtype = node.dtype();
  body.open("for (long row = 0; row < $rows; ++row)",
            {{"rows", n == 0 ? 0 : shape.elements() / n}});
  body.add("const long i = row % $m;", {{"m", shape.size(-2)}});
  body.open("for (long j = 0; j < $n; ++j)", {{"n", n}});
  body.add("const $T x = x0[row * $n + j];", {{"T", node.type()}, {"n", n}});
  const std::string element = inverts ? filled("(i == j ? $main : $all) * x",
                                               {{"main", c_literal(factor * on_diagonal, dtype)},
                                                {"all", c_literal(factor, dtype)}})
                                      : std::string("x");
  body.add("y0[row * $n + j] = $inside ? $element : 0;",
           {{"n", n},
            {"inside", filled(upper ? "j - i >= $d" : "j - i <= $d", {{"d", diagonal}})},
            {"element", element}});
  body.close();
  body.close();
}

/// A value in memory of its own. Takes over the memory of its input where it can.
void emit_copied(const CNode& node, CBody& body) {
  body.add("if (y0 != x0) memcpy(y0, x0, $n * sizeof(*y0));",
           {{"n", node.output_shape().elements()}});
}

}  // namespace

void add_shape_emitters(CEmitters& emitters) {
  emitters["broadcast_to"] = {emit_broadcast};
  emitters["permute"] = {emit_permute};
  emitters["slice"] = {emit_slice};
  emitters["pad"] = {emit_pad};
  emitters["concat"] = {emit_concat};
  emitters["split"] = {emit_split};
  emitters["roll"] = {emit_roll};
  emitters["triangle"] = {emit_triangle, nullptr, first_alike_input};
  emitters["copy"] = {emit_copied, nullptr, first_alike_input};
}

}  // namespace palimpsest
