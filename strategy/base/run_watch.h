#pragma once

#include <cstddef>

#include "autodiff/operation.h"

namespace palimpsest {

/// Follows those runs of an engine that have a backward part, for somebody who does something with
/// gradients while others are still being computed.
class RunWatch {
 public:
  virtual ~RunWatch() = default;
  /// The run is planned, and nothing of it has been computed. What this throws ends it.
  virtual void begin() = 0;
  /// A target is final. It is named by its place among those that the run was asked for: of
  /// `backward`, 0 is the loss and i + 1 the gradient of parameter i. It is to be read within the
  /// call: later steps may write the same bits again. A target that no step makes, as a leaf, is
  /// not told of. Called by the thread that ran the step, for several targets at the same time.
  virtual void made(std::size_t target, const Operand& value) = 0;
  /// A step has ended; likewise.
  virtual void stepped() = 0;
};

}  // namespace palimpsest
