#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "autodiff/export.h"
#include "autodiff/var.h"
#include "strategy/base/loss_and_outputs.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Records a model's output from its parameters and a batch: a loss, perhaps with auxiliary
/// outputs, or a value. The tensors of a batch have the examples along their first axis. Called
/// once for every part of a batch. Replicas that run in parallel call it from several threads at
/// the same time.
using ModelFunction = std::function<LossAndOutputs(Tape& tape, std::span<const Var> parameters,
                                                   std::span<const Var> batch)>;

/// How the losses of the parts of a batch combine to the loss of the whole batch.
enum class LossReduction : std::uint8_t {
  mean,  ///< the loss is a mean over examples
  sum,   ///< the loss is a sum over examples
};

}  // namespace palimpsest
