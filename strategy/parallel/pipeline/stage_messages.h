#pragma once

#include <cstddef>

#include "strategy/parallel/pipeline/pipeline_layout.h"

namespace palimpsest {

/// How a stage whose neighbours are in other processes gets what it reads, and hands on what it
/// makes. A stage that fails goes on with its messages, so that nobody waits for it for ever; for
/// that they take no memory but that of MPI itself.
class StageMessages {
 public:
  virtual ~StageMessages() = default;

  /// A run begins, whose rings lie in `block`.
  virtual void begin(std::byte* block) = 0;
  /// Before a piece runs: waits until what it reads has come, and what it writes over has been
  /// taken. False where a stage that it comes from has failed.
  virtual bool receive(const PlacedPiece& placed, int micro_batch) = 0;
  /// After it: hands on what it has made or, where it `failed`, that it has made nothing.
  virtual void send(const PlacedPiece& placed, int micro_batch, bool failed) = 0;
  /// A step of a piece has ended; by any thread.
  virtual void progress() = 0;
  /// The run ends: waits until all has been taken.
  virtual void end() = 0;
};

}  // namespace palimpsest
