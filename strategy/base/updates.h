#pragma once

#include <span>
#include <vector>

#include "autodiff/export.h"
#include "autodiff/tape.h"
#include "strategy/base/loss_and_outputs.h"

namespace palimpsest PALIMPSEST_EXPORT {  // for palimpsest-mpi

/// Appends the values of the tape's updates to the outputs.
void append_updates(LossAndOutputs& values);

/// Throws `ArgumentError` unless two parts of a batch update the same tensors, in the same order
/// and by the same weights.
void require_same_updates(std::span<const Tape::Update> updates,
                          std::span<const Tape::Update> others);

/// Copies each tensor that shares its storage with a target, so that the updates do not change it.
void keep_from_updates(std::span<const Tape::Update> updates, std::span<Tensor> tensors);

/// The contents that targets get by updates, before any target changes.
class StagedUpdates {
 public:
  StagedUpdates() = default;
  /// Does the updates in order, on copies of the targets.
  StagedUpdates(std::span<const Tape::Update> updates, std::span<const Tensor> values);
  /// Changes the targets. Allocates nothing.
  void apply() const;

 private:
  std::vector<Tensor> targets_;
  std::vector<Tensor> contents_;
};

/// Changes the targets by the values, in order.
void apply_updates(std::span<const Tape::Update> updates, std::span<const Tensor> values);

/// The mean of the values of several parts of a batch, weighted by their numbers of examples. The
/// terms are added in order, in f64.
Tensor mean_of_parts(std::span<const Tensor> values, std::span<const std::int64_t> examples);

}  // namespace palimpsest
