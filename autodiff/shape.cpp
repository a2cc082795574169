#include "autodiff/shape.h"

#include <algorithm>
#include <limits>
#include <ostream>

namespace palimpsest {

namespace {

// More than any machine addresses, and so small that sums over a tape cannot overflow.
constexpr std::int64_t most = std::int64_t{1} << 44;

}  // namespace

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  bool too_many = false;
  for (const std::int64_t size : *this) {
    if (size == 0) return 0;
    too_many = __builtin_mul_overflow(product, size, &product) || product > most || too_many;
  }
  if (too_many) {
    throw ShapeError("[shape] " + to_string(*this) +
                     " has more elements than any memory can hold; give at most 2⁴⁴");
  }
  return product;
}

bool Shape::is_possible() const {
  // In f64, which cannot overflow and is exact enough here.
  double product = 1;
  for (const std::int64_t size : *this) {
    if (size < 0 || size > most) return false;
    product *= static_cast<double>(size);
  }
  return product <= static_cast<double>(most);
}

std::int64_t add_sizes(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  return a > largest - b ? largest : a + b;
}

std::int64_t multiply_sizes(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  return b != 0 && a > largest / b ? largest : a * b;
}

namespace {

bool inside(int& axis, int rank) {
  if (axis < 0) axis += rank;
  return axis >= 0 && axis < rank;
}

std::string out_of_range(int axis, const Shape& shape) {
  const std::string text =
      "axis " + std::to_string(axis) + " is out of range for shape " + to_string(shape);
  if (shape.rank() == 0) return text + ", which has no axes";
  const std::string rank = std::to_string(shape.rank());
  return text + "; use -" + rank + " to " + std::to_string(shape.rank() - 1);
}

}  // namespace

int Shape::wrap(int axis) const {
  int wrapped = axis;
  if (!inside(wrapped, rank_)) throw ShapeError("[shape] " + out_of_range(axis, *this));
  return wrapped;
}

int Shape::wrap(int axis, std::string_view operation, const Where& where) const {
  int wrapped = axis;
  if (!inside(wrapped, rank_)) throw ShapeError(operation, out_of_range(axis, *this), where);
  return wrapped;
}

namespace {

std::string negative(std::int64_t size) {
  return "a tensor's axis cannot have size " + std::to_string(size) + "; give 0 or more";
}

std::string too_many_axes(std::string_view there_are) {
  return "a tensor has at most " + std::to_string(max_rank) + " axes" + std::string(there_are);
}

}  // namespace

void Shape::throw_impossible(std::span<const std::int64_t> sizes, const Where& where) {
  for (const std::int64_t size : sizes) {
    if (size < 0) throw ShapeError("shape", negative(size), where);
  }
  throw ShapeError("shape", too_many_axes(", not " + std::to_string(sizes.size())), where);
}

void Shape::throw_no_room_for(std::int64_t size) {
  throw ShapeError("[shape] " + (size < 0 ? negative(size) : too_many_axes("")));
}

void Shape::throw_outside(int axis, int last) const {
  throw ShapeError("[shape] there is no place " + std::to_string(axis) + " in shape " +
                   to_string(*this) +
                   (last < 0 ? ", which has no axes" : "; give 0 to " + std::to_string(last)));
}

void Shape::insert(int axis, std::int64_t size) {
  if (axis < 0 || axis > rank_) throw_outside(axis, rank_);
  if (size < 0 || rank_ == max_rank) throw_no_room_for(size);
  std::copy_backward(sizes_.begin() + axis, sizes_.begin() + rank_, sizes_.begin() + rank_ + 1);
  sizes_[static_cast<std::size_t>(axis)] = size;
  ++rank_;
}

void Shape::erase(int axis) {
  if (axis < 0 || axis >= rank_) throw_outside(axis, rank_ - 1);
  std::copy(sizes_.begin() + axis + 1, sizes_.begin() + rank_, sizes_.begin() + axis);
  --rank_;
}

std::string to_string(const Shape& shape) {
  std::string text = "(";
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (axis > 0) text += ", ";
    text += std::to_string(shape[axis]);
  }
  return text + ")";
}

std::ostream& operator<<(std::ostream& stream, const Shape& shape) {
  return stream << to_string(shape);
}

Strides strides_of(const Shape& shape) {
  Strides strides{};
  std::uint64_t stride = 1;  // unsigned: an empty shape may have sizes whose product overflows
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[static_cast<std::size_t>(axis)] = static_cast<std::int64_t>(stride);
    stride *= static_cast<std::uint64_t>(shape[axis]);
  }
  return strides;
}

Shape broadcast(const Shape& a, const Shape& b, std::string_view operation, const Where& where) {
  if (a == b) return a;
  Shape result = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  const int offset = result.rank() - shorter.rank();
  for (int axis = 0; axis < shorter.rank(); ++axis) {
    const std::int64_t theirs = shorter[axis];
    std::int64_t& ours = result[axis + offset];
    if (ours == 1) {
      ours = theirs;
    } else if (theirs != ours && theirs != 1) {
      throw ShapeError(operation,
                       "shapes " + to_string(a) + " and " + to_string(b) +
                           " do not broadcast; aligned at the last axis, sizes must be equal or 1",
                       where);
    }
  }
  return result;
}

void require_axes(std::int64_t count, std::string_view operation, const Where& where) {
  if (count <= max_rank) return;
  throw ShapeError(operation,
                   "the result would have " + std::to_string(count) + " axes; " +
                       too_many_axes(", so reshape it first"),
                   where);
}

}  // namespace palimpsest
