#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "autodiff/export.h"
#include "autodiff/tape.h"
#include "strategy/base/updates.h"

namespace palimpsest PALIMPSEST_EXPORT {  // for palimpsest-mpi

/// Throws `ArgumentError` where two parts of a batch return different numbers of outputs and
/// updates.
void require_equally_many(std::size_t outputs, std::size_t others);

/// The type of an output of all parts: concatenated along the first axis. An output without axes
/// becomes one with an element for each part. A single part keeps its shape. Throws `ShapeError` or
/// `DTypeError` where the parts do not fit together.
ValueType type_of_output(std::span<const ValueType> parts);

/// What the parts of a batch return in addition to gradients, in the order of the parts: auxiliary
/// outputs, and values of updates.
class PartOutputs {
 public:
  /// Adds the outputs of the next part; the last ones are the values of updates. Throws as
  /// `require_equally_many`.
  void add(std::vector<Tensor> outputs, std::int64_t examples);

  /// The outputs of the batch, and the updates that are to be applied at its end.
  struct Joined {
    std::vector<Tensor> outputs = {};
    StagedUpdates updates = {};
  };
  /// Joins the outputs as `type_of_output` says, and releases those of the parts one after the
  /// other. Call it once. The last ones are the values of `updates`: each target gets the mean over
  /// the examples. Throws as `type_of_output`.
  Joined join(std::span<const Tape::Update> updates);
  /// Likewise, with the updates applied.
  std::vector<Tensor> finish(std::span<const Tape::Update> updates);

 private:
  std::vector<std::vector<Tensor>> by_output_;
  std::vector<std::int64_t> examples_;
};

}  // namespace palimpsest
