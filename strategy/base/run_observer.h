#pragma once

#include <cstddef>

#include "autodiff/operation.h"

namespace palimpsest {

/// Observes the runs of an engine that have a backward part. It allows using gradients while others
/// are still being computed.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  /// The run is planned, and nothing of it has been computed. An exception ends the run.
  virtual void begin() = 0;
  /// A target is final. `target` is its index among the targets of the run: for `backward`, the
  /// loss comes first, then the auxiliary outputs that are computed, and then the gradients (see
  /// `Replica::first_gradient`). Read the value only within the call: later
  /// steps may overwrite it with the same bits. Not called for a target that no step makes, such as
  /// a leaf. Called by the thread that ran the step, so calls for several targets may run in
  /// parallel.
  virtual void made(std::size_t target, const Operand& value) = 0;
  /// A step has ended. Called in the same way.
  virtual void stepped() = 0;
};

}  // namespace palimpsest
