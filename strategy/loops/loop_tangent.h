#pragma once

#include "strategy/loops/loop.h"

namespace palimpsest {

/// The adjoints of what the backward part of a loop reads. That is linear in the adjoints it is
/// given, so its derivative is the loop that carries tangents along with the state (Townsend, 2017,
/// for a step), and the derivative of that: both hold as few states as any loop.
void pull_back_gradient(const LoopGradient& gradient, const Pullback& p);

}  // namespace palimpsest
