#pragma once

#include <optional>
#include <span>
#include <vector>

#include "strategy/base/execution_strategy.h"
#include "strategy/base/free_memory.h"
#include "strategy/base/report.h"
#include "strategy/parallel/partition/piece_programs.h"
#include "strategy/parallel/pipeline/cut_program.h"
#include "strategy/parallel/pipeline/pipeline_layout.h"

namespace palimpsest {

/// How the stages of a pipeline, or one of them, run in one block of memory.
struct PipelinePlan {
  /// The pieces of each program. Pieces of other processes are empty.
  std::vector<std::vector<PlacedPiece>> programs;
  std::optional<int> stage;  ///< the only planned stage, as in `PipelineRequest`
  PipelineLayout layout;
  std::vector<Bytes> workspaces;  ///< by stage: for one of its pieces at a time
  std::vector<Bytes> workspace_begins;
  Bytes block = 0;
  Bytes predicted_peak = 0;  ///< the block, and memory outside of it
  Bytes keep_all_peak = 0;   ///< of a plan that recomputes nothing
  Bytes budget = unlimited;
  double seconds = 0;                            ///< per micro-batch, by the machine
  double keep_all_seconds = 0;                   ///< of a plan that recomputes nothing
  std::vector<std::uint32_t> keep_all_computed;  ///< by program: nodes that such a plan runs
  std::vector<Report::Stage> stages;             ///< all stages; peaks only of those run here

  /// As `Plan::compute_overhead`. 0 where the stages have nothing to do.
  double compute_overhead() const {
    return keep_all_seconds > 0 ? seconds / keep_all_seconds - 1 : 0;
  }
  const PlacedPiece& piece(std::size_t program, int stage, bool is_backward) const {
    const std::vector<PlacedPiece>& pieces = programs[program];
    const auto forward = static_cast<std::size_t>(stage);
    return pieces[is_backward ? pieces.size() - 1 - forward : forward];
  }
};

/// The input of `plan_pipeline`.
struct PipelineRequest {
  /// The distinct programs of the micro-batches, all cut into the same number of stages.
  std::span<const CutProgram* const> programs;
  const PipelineOrder& order;
  GradientMode gradient;
  PieceOptions pieces;  ///< the budget is for everything together
  /// Several micro-batches are summed; a single one writes gradients to their final place.
  bool sums_gradients;
  Bytes outcomes;                   ///< bytes of losses or values
  std::vector<Bytes> outputs = {};  ///< bytes of each output, of all micro-batches together
  Bytes kept = 0;                   ///< bytes kept from earlier runs for reuse
  FreeMemory free = [] { return free_memory(); };
  /// The only stage to plan, where each stage has a process of its own. Then the budget is for this
  /// stage, which has all gradients at the end.
  std::optional<int> stage = {};
};

/// Decides what each stage keeps between the forward and the backward part of a micro-batch. A
/// stage keeps everything that adjoints read, or only its inputs, from which it computes the
/// forward part again. It recomputes where the mode asks for it or the budget is too small. The
/// first stages recompute first, since they have the most micro-batches in flight.
///
/// Where that is not enough, stages compute with smaller workspaces; the reduction is proportional
/// for all stages. With several processes each decides for its own stage, which does not change
/// what it sends to others. Messages are received ahead where the budget has room for them.
///
/// Throws `BudgetError` naming the smallest budget for all, and `ArgumentError` for a loop where
/// nothing may be recomputed.
PipelinePlan plan_pipeline(const PipelineRequest& request, PiecePrograms& programs);

}  // namespace palimpsest
