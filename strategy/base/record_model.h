#pragma once

#include <span>

#include "autodiff/export.h"
#include "strategy/base/model.h"

namespace palimpsest PALIMPSEST_EXPORT {  // for palimpsest-mpi

/// Records a model with leaves for its parameters and its batch. Throws what the model throws, and
/// `ArgumentError` where it returns a value that is not of the tape.
LossAndOutputs record_model(const ModelFunction& model, Tape& tape,
                            std::span<const Tensor> parameters, std::span<const Tensor> batch);

/// Throws `ArgumentError` where a model recorded parameters other than those it was given. Gradient
/// sums are allocated, and counted, for the given ones only.
void require_all_given(Tape& tape, std::span<const Tensor> parameters);

}  // namespace palimpsest
