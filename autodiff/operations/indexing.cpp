#include <algorithm>

#include "autodiff/operations/index.h"
#include "autodiff/operations/shape.h"

namespace palimpsest {
namespace {

bool takes_an_axis(const Index& index) {
  return index.kind() != Index::Kind::new_axis && index.kind() != Index::Kind::ellipsis;
}

bool are_positions(const Index& index) {
  return index.kind() == Index::Kind::positions || index.kind() == Index::Kind::tensor;
}

bool is_ellipsis(const Index& index) { return index.kind() == Index::Kind::ellipsis; }

/// Throws for more indices than axes, and for a second ellipsis or tensor of positions.
void check_indices(std::span<const Index> indices, const Shape& shape) {
  const Where& where = indices.front().where();
  const auto taken = std::ranges::count_if(indices, takes_an_axis);
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
    throw ArgumentError("index",
                        "more than one index is a tensor of positions; call index_select for each, "
                        "or gather for positions that belong together",
                        where);
  }
}

}  // namespace

Var Var::operator[](const Index& index) const { return (*this)[{index}]; }

Var Var::operator[](std::initializer_list<Index> indices) const {
  if (indices.size() == 0) return *this;
  const std::span<const Index> all(indices.begin(), indices.size());
  require_value(*this, "index", all.front().where());
  check_indices(all, shape());
  const int rest = rank() - static_cast<int>(std::ranges::count_if(all, takes_an_axis));
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
        result = index_select(result, axis, positions, index.where());
        axis += positions.rank();
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
