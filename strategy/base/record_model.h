#pragma once

#include <span>

#include "autodiff/export.h"
#include "strategy/base/model.h"

namespace palimpsest PALIMPSEST_EXPORT {  // for palimpsest-mpi

/// Records a model with leaves for its parameters and its batch, which have the line of the user's
/// call. Throws what the model throws, and `ArgumentError` where it returns a value that is not of
/// the tape.
LossAndOutputs record_model(const ModelFunction& model, Tape& tape,
                            std::span<const Tensor> parameters, std::span<const Tensor> batch,
                            const Where& where);

/// Prepares an empty tape for part `part` of a batch. `count` is a tape that was cleared once for
/// each batch. So every batch and every part has random streams of its own.
void begin_part(Tape& tape, int part, const Tape& count);

/// Throws `ArgumentError` for a parameter that was given, but that the model reads as a constant
/// only, as it does with one that was frozen since. It would have a gradient of zeros, and an
/// optimizer would change it.
void require_not_frozen(Tape& tape, std::span<const Tensor> parameters, const Where& where);

/// Throws `ArgumentError` where a model recorded parameters other than those it was given. Gradient
/// sums are allocated, and counted, for the given ones only.
void require_all_given(Tape& tape, std::span<const Tensor> parameters, const Where& where);

}  // namespace palimpsest
