#pragma once

#include <span>
#include <vector>

#include "autodiff/var.h"

namespace palimpsest {

/// `vjp` with ones as seeds. `origins` receives, for each node recorded, in order, the forward node
/// that was being differentiated. Deferred contributions that are merged (see `Adjoints`) belong to
/// the node at which they are merged.
std::vector<Var> vjp_with_origins(std::span<const Var> ys, std::span<const Var> xs,
                                  std::vector<NodeId>& origins, Where where = Where::current());

}  // namespace palimpsest
