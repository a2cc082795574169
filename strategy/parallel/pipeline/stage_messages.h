#pragma once

#include <cstddef>

#include "strategy/parallel/pipeline/pipeline_layout.h"

namespace palimpsest {

/// Exchanges values between a stage and stages in other processes. A stage that fails continues to
/// exchange messages, so that no other stage waits for it forever. For that, messages allocate no
/// memory except inside MPI.
class StageMessages {
 public:
  virtual ~StageMessages() = default;

  /// A run begins; its rings are in `block`.
  virtual void begin(std::byte* block) = 0;
  /// Called before a piece runs. Waits until the piece's inputs have arrived, and until the values
  /// that it overwrites have been sent. Returns false where a stage that it receives from has
  /// failed.
  virtual bool receive(const PlacedPiece& placed, int micro_batch) = 0;
  /// Called after a piece has run. Sends what it made or, if it `failed`, that it made nothing.
  virtual void send(const PlacedPiece& placed, int micro_batch, bool failed) = 0;
  /// Called when a step of a piece has ended, by any thread.
  virtual void progress() = 0;
  /// The run ends. Waits until everything has been sent.
  virtual void end() = 0;
};

}  // namespace palimpsest
