#include <cstdio>
#include <ostream>

#include "autodiff/tensor.h"

namespace palimpsest {
namespace {

/// Elements printed at each end of a long axis; fewer for high ranks.
std::int64_t edge_items(const Shape& shape) { return shape.rank() <= 4 ? 3 : 1; }

std::string element_text(const Tensor& tensor, std::int64_t index) {
  return visit(tensor.dtype(), [&]<class T>(T) -> std::string {
    const T element = tensor.data<T>()[static_cast<std::size_t>(index)];
    if constexpr (std::is_same_v<T, bool>) {
      return element ? "true" : "false";
    } else if constexpr (std::is_integral_v<T>) {
      return std::to_string(element);
    } else {
      char text[32];
      std::snprintf(text, sizeof text, "%.6g", convert_element<double>(element));
      return text;
    }
  });
}

/// Appends the sub-array of the axes from `axis` on. The recursion depth is at most `max_rank`.
void append(std::string& text, const Tensor& tensor, int axis, std::int64_t offset) {
  const Shape& shape = tensor.shape();
  if (axis == shape.rank()) {
    text += element_text(tensor, offset);
    return;
  }
  const std::int64_t stride = strides_of(shape)[static_cast<std::size_t>(axis)];
  const std::int64_t edge = edge_items(shape);
  const bool innermost = axis == shape.rank() - 1;
  text += '[';
  for (std::int64_t i = 0; i < shape[axis]; ++i) {
    if (i > 0)
      text += innermost ? ", " : ",\n" + std::string(static_cast<std::size_t>(axis) + 1, ' ');
    if (i == edge && shape[axis] > 2 * edge) {
      text += "...";
      i = shape[axis] - edge - 1;
    } else {
      append(text, tensor, axis + 1, offset + i * stride);
    }
  }
  text += ']';
}

}  // namespace

std::string to_string(const Tensor& tensor) {
  if (!tensor.defined()) return "undefined tensor";
  std::string text = to_string(tensor.type()) + "\n";
  append(text, tensor, 0, 0);
  return text;
}

std::ostream& operator<<(std::ostream& stream, const Tensor& tensor) {
  return stream << to_string(tensor);
}

}  // namespace palimpsest
