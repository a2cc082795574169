#pragma once

#include <optional>

#include "autodiff/var.h"

namespace palimpsest {

/// Zeros to which elements or slices of `source` were added at the positions in `index`.
struct Scattered {
  Var source;
  Var index;
  int axis;
  bool by_element;  ///< by `scatter_add`; otherwise by `index_add`
};

/// What x was made of, if `scatter_add` or `index_add` made it from zeros.
std::optional<Scattered> scattered_among_zeros(const Var& x);

/// What `reshape` made x of; undefined if x is another operation's.
Var before_reshape(const Var& x);

/// The sum of two tensors of one type, of which one was scattered among zeros, perhaps reshaped
/// after that. Only elements that were named are added, so that zeros are neither written nor read.
/// Undefined if neither was.
Var add_scattered(const Var& a, const Var& b);

}  // namespace palimpsest
