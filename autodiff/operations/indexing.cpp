#include <algorithm>
#include <vector>

#include "autodiff/operations/index.h"
#include "autodiff/operations/shape.h"

namespace palimpsest {
namespace {

bool are_positions(const Index& index) {
  return index.kind() == Index::Kind::positions || index.kind() == Index::Kind::tensor;
}

bool is_ellipsis(const Index& index) { return index.kind() == Index::Kind::ellipsis; }

int taken_axes(std::span<const Index> indices) {
  int taken = 0;
  for (const Index& index : indices) taken += index.taken_axes();
  return taken;
}

/// The elements of x where a mask of the axes from `axis` on is true, with one axis in their place.
Var select_by_mask(const Var& x, int axis, const Var& mask, const Where& where) {
  std::vector<Var> indices(static_cast<std::size_t>(axis));
  indices.push_back(mask);
  return index(x, indices, where);
}

/// Throws for more indices than axes, and for a second ellipsis or tensor of positions.
void check_indices(std::span<const Index> indices, const Shape& shape) {
  const Where& where = indices.front().where();
  const int taken = taken_axes(indices);
  if (taken > shape.rank()) {
    throw ShapeError("index",
                     std::to_string(taken) + " indices for shape " + to_string(shape) +
                         "; give at most " + std::to_string(shape.rank()),
                     where);
  }
  if (std::ranges::count_if(indices, is_ellipsis) > 1) {
    throw ArgumentError("index", "more than one ellipsis; give one at most", where);
  }
  if (std::ranges::count_if(indices, are_positions) > 1) {
    throw ArgumentError(
        "index",
        "more than one index is a tensor of positions or a mask; call index_select for each, "
        "or index for positions that belong together",
        where);
  }
}

}  // namespace

bool Index::is_mask() const {
  if (kind_ == Kind::tensor) return tensor_.defined() && tensor_.dtype() == DType::boolean;
  return kind_ == Kind::positions && positions_.defined() && positions_.dtype() == DType::boolean;
}

int Index::taken_axes() const {
  if (kind_ == Kind::new_axis || kind_ == Kind::ellipsis) return 0;
  if (!is_mask()) return 1;
  return kind_ == Kind::tensor ? tensor_.shape().rank() : positions_.rank();
}

Var Var::operator[](const Index& index) const { return (*this)[{index}]; }

Var Var::operator[](std::initializer_list<Index> indices) const {
  if (indices.size() == 0) return *this;
  const std::span<const Index> all(indices.begin(), indices.size());
  require_value(*this, "index", all.front().where());
  check_indices(all, shape());
  const int rest = rank() - taken_axes(all);
  Var result = *this;
  int axis = 0;
  for (const Index& index : all) {
    switch (index.kind()) {
      case Index::Kind::place:
        result = select(result, axis, index.place(), index.where());
        break;
      case Index::Kind::range:
        result = slice(result, axis++, index.range(), index.where());
        break;
      case Index::Kind::positions:
      case Index::Kind::tensor: {
        const Var positions = index.positions(tape());
        const bool is_mask = index.is_mask();
        result = is_mask ? select_by_mask(result, axis, positions, index.where())
                         : index_select(result, axis, positions, index.where());
        axis += is_mask ? 1 : positions.rank();
        break;
      }
      case Index::Kind::new_axis:
        result = unsqueeze(result, axis++, index.where());
        break;
      case Index::Kind::ellipsis:
        axis += rest;
        break;
    }
  }
  return result;
}

}  // namespace palimpsest
