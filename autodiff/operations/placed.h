#pragma once

#include <optional>
#include <vector>

#include "autodiff/var.h"

namespace palimpsest {

/// A tensor that lies among zeros: from place `begin` of one axis on, whole along the others.
struct Placed {
  Var part;
  int axis;
  std::int64_t begin;

  std::int64_t end() const { return begin + part.shape()[axis]; }
};

/// What `padded` was made of, when a pad by zeros along one axis made it.
std::optional<Placed> placed_among_zeros(const Var& padded);

/// Tensors of one type that `placed_among_zeros` knows, put together as far as they do not overlap:
/// as few tensors as that takes, whose sum is theirs.
std::vector<Var> put_together(const std::vector<Var>& padded);

}  // namespace palimpsest
