#pragma once

#include <span>

#include "strategy/pipeline/pipeline_plan.h"

namespace palimpsest {

/// A micro-batch that goes through a pipeline.
struct MicroBatch {
  std::size_t program;  ///< of the plan
  const Tape* tape;     ///< that it was recorded on: its leaves
  std::uint32_t round;  ///< how often more than the program's this tape was cleared
  std::byte* outcome;   ///< where the loss or the value goes
  std::vector<std::byte*>
      gradients;  ///< where gradients go, by parameter; none where they are summed
};

/// How a stage whose neighbours are in other processes gets what it reads, and hands on what it
/// makes. A stage that fails goes on with its messages, so that nobody waits for it for ever.
class StageMessages {
 public:
  virtual ~StageMessages() = default;

  /// A run begins, whose rings lie in `block`.
  virtual void begin(const PipelinePlan& plan, std::span<const MicroBatch> micro_batches,
                     std::byte* block) = 0;
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
