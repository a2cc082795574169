#pragma once

#include <optional>

#include "autodiff/var.h"

namespace palimpsest {

/// Zeros to which elements or slices of `source` were added at the positions in `index`, and then
/// reshaped.
struct Scattered {
  Var source;
  Var index;
  int axis;
  bool by_element;  ///< by `scatter_add`; otherwise by `index_add`
  Shape shape;      ///< before it was reshaped
  Where where;      ///< of the scattering
};

/// Describes an x that `scatter_add` or `index_add` made from zeros. Nothing for other tensors, for
/// values before `first`, and where no derivative flows.
std::optional<Scattered> scattered_among_zeros(const Var& x, ValueId first);

/// The tensor that `reshape` turned into x. Undefined if x is another operation's result.
Var before_reshape(const Var& x);

/// The sum of two tensors of one type, of which one was scattered among zeros. Only elements that
/// were named are added, so that zeros are neither written nor read. Undefined if neither was.
Var add_scattered(const Var& a, const Var& b, ValueId first);

}  // namespace palimpsest
