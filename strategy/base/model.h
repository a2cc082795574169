#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "autodiff/var.h"

namespace palimpsest {

/// Records what a model makes of parameters and a batch, whose tensors have the examples along
/// their first axis. Called once for every part of a batch, for replicas that run at once by
/// several threads at the same time.
using ModelFunction =
    std::function<Var(Tape& tape, std::span<const Var> parameters, std::span<const Var> batch)>;

/// What the losses of the parts of a batch are to the loss of the whole.
enum class LossReduction : std::uint8_t {
  mean,  ///< each is the mean over its examples, and so is the whole
  sum,   ///< each is a sum over its examples, and so is the whole
};

}  // namespace palimpsest
