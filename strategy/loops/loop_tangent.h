#pragma once

#include "strategy/loops/loop.h"

namespace palimpsest {

/// The adjoints of the inputs of a loop's backward part. That part is linear in the adjoints it is
/// given. So its derivative is the loop that carries tangents along with the state (Townsend, 2017,
/// for a step), and the derivative of that loop. Both hold as few states as any loop.
void pull_back_gradient(const LoopGradient& gradient, const Pullback& p);

}  // namespace palimpsest
