#pragma once

#include <optional>
#include <vector>

#include "autodiff/var.h"

namespace palimpsest {

/// A tensor padded with zeros along one axis: `part` starts at position `begin`.
struct Placed {
  Var part;
  int axis;
  std::int64_t begin;

  std::int64_t end() const { return begin + part.shape()[axis]; }
};

/// The source of `padded`, if a zero pad along one axis made it.
std::optional<Placed> placed_among_zeros(const Var& padded);

/// Zeros of size `size` along the last axis, with the elements of x at the positions start, start +
/// step, …; step > 0. There must be room for them.
Var spread_among_zeros(const Var& x, std::int64_t start, std::int64_t step, std::int64_t size,
                       const Where& where);

/// Merges non-overlapping tensors of one type that `placed_among_zeros` recognizes. Returns as few
/// tensors as possible with the same sum.
std::vector<Var> put_together(const std::vector<Var>& padded);

}  // namespace palimpsest
