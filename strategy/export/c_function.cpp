#include "strategy/export/c_function.h"

#include <algorithm>

namespace palimpsest {

void CBody::add(std::string_view pattern, Blanks blanks) {
  const std::string lines = filled(pattern, blanks);
  std::size_t begin = !lines.empty() && lines[0] == '\n' ? 1 : 0;
  while (begin < lines.size()) {
    const std::size_t end = std::min(lines.find('\n', begin), lines.size());
    if (end > begin) text_ += std::string(2 * depth_, ' ') + lines.substr(begin, end - begin);
    text_ += '\n';
    begin = end + 1;
  }
}

void CBody::open(std::string_view pattern, Blanks blanks) {
  add(std::string(pattern) + " {", blanks);
  ++depth_;
}

void CBody::close() {
  --depth_;
  add("}");
}

void CBody::use(const std::string& text) {
  if (std::ranges::find(helpers_, text) == helpers_.end()) helpers_.push_back(text);
}

CLoops::CLoops(const Shape& shape, const std::vector<Strides>& strides, std::string letter)
    : letter_(std::move(letter)), strides_(strides.size()) {
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const std::int64_t size = shape[axis];
    if (size == 1) continue;
    const auto at = static_cast<std::size_t>(axis);
    bool follows = !sizes_.empty();
    for (std::size_t k = 0; follows && k < strides.size(); ++k) {
      follows = strides_[k].back() == size * strides[k][at];
    }
    if (follows) {
      sizes_.back() *= size;
      for (std::size_t k = 0; k < strides.size(); ++k) strides_[k].back() = strides[k][at];
    } else {
      sizes_.push_back(size);
      for (std::size_t k = 0; k < strides.size(); ++k) strides_[k].push_back(strides[k][at]);
    }
  }
}

void CLoops::open(CBody& body) const {
  for (std::size_t loop = 0; loop < sizes_.size(); ++loop) {
    body.open("for (long $i = 0; $i < $n; ++$i)",
              {{"i", letter_ + std::to_string(loop)}, {"n", sizes_[loop]}});
  }
}

void CLoops::close(CBody& body) const {
  for (std::size_t loop = 0; loop < sizes_.size(); ++loop) body.close();
}

std::string CLoops::offset(std::size_t operand) const {
  std::string text;
  for (std::size_t loop = 0; loop < sizes_.size(); ++loop) {
    const std::int64_t stride = strides_[operand][loop];
    if (stride == 0) continue;
    const std::string index = letter_ + std::to_string(loop);
    const std::int64_t distance = stride < 0 ? -stride : stride;
    const std::string term = distance == 1 ? index : std::to_string(distance) + "*" + index;
    if (text.empty()) {
      text = stride < 0 ? "-" + term : term;
    } else {
      text += (stride < 0 ? " - " : " + ") + term;
    }
  }
  return text.empty() ? "0" : text;
}

Strides broadcast_strides(const Shape& from, const Shape& to) {
  const Strides dense = strides_of(from);
  Strides strides{};
  const int missing = to.rank() - from.rank();
  for (int axis = missing; axis < to.rank(); ++axis) {
    const auto source = static_cast<std::size_t>(axis - missing);
    if (from[axis - missing] != 1) strides[static_cast<std::size_t>(axis)] = dense[source];
  }
  return strides;
}

std::string sum_of(const std::string& a, const std::string& b) {
  if (a == "0") return b;
  if (b == "0") return a;
  return b[0] == '-' ? a + " - " + b.substr(1) : a + " + " + b;
}

}  // namespace palimpsest
