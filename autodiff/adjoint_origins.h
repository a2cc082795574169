#pragma once

#include <span>
#include <vector>

#include "autodiff/var.h"

namespace palimpsest {

/// `vjp` of ones, and of every node that it records, in order, the node that it is an adjoint of:
/// what a value's adjoint is made of when nothing is added to it any more, as several products
/// together, belongs to the node that makes the value.
std::vector<Var> vjp_with_origins(std::span<const Var> ys, std::span<const Var> xs,
                                  std::vector<NodeId>& origins, Where where = Where::current());

}  // namespace palimpsest
