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

/// How the stages of a pipeline run, or one of them, in one block of memory.
struct PipelinePlan {
  /// The pieces of each; empty ones in place of those of other processes.
  std::vector<std::vector<PlacedPiece>> programs;
  std::optional<int> stage;  ///< the only one, as in `PipelineRequest`
  PipelineLayout layout;
  std::vector<Bytes> workspaces;  ///< by stage: for one of its pieces at a time
  std::vector<Bytes> workspace_begins;
  Bytes block = 0;
  Bytes predicted_peak = 0;  ///< the block, and what lies beside it
  Bytes keep_all_peak = 0;   ///< of a plan that computes nothing again
  Bytes budget = unlimited;
  double seconds = 0;                            ///< of a micro-batch, by the machine
  double keep_all_seconds = 0;                   ///< of a plan that computes nothing again
  std::vector<std::uint32_t> keep_all_computed;  ///< by program: nodes that such a plan runs
  std::vector<Report::Stage> stages;             ///< all; without peaks where others run them

  /// As `Plan::compute_overhead`; 0 of stages with nothing to do.
  double compute_overhead() const {
    return keep_all_seconds > 0 ? seconds / keep_all_seconds - 1 : 0;
  }
  const PlacedPiece& piece(std::size_t program, int stage, bool is_backward) const {
    const std::vector<PlacedPiece>& pieces = programs[program];
    const auto forward = static_cast<std::size_t>(stage);
    return pieces[is_backward ? pieces.size() - 1 - forward : forward];
  }
};

/// What is to be planned.
struct PipelineRequest {
  /// What micro-batches are, those that are alike once; cut into as many stages.
  std::span<const CutProgram* const> programs;
  const PipelineOrder& order;
  GradientMode gradient;
  PieceOptions pieces;  ///< the budget is of all
  bool sums_gradients;  ///< of several micro-batches; otherwise they are made where they stay
  Bytes outcomes;       ///< bytes of losses or values
  Bytes kept = 0;       ///< that runs before left to be used again
  FreeMemory free = [] { return free_memory(); };
  /// The only stage that is planned, where each has a process of its own; then the budget is for
  /// this one, which in the end has all gradients.
  std::optional<int> stage = {};
};

/// Decides what stages keep between the forward and the backward part of a micro-batch: all that
/// adjoints read or, where the mode asks for it or the budget leaves no room, what comes in, from
/// which the forward part is computed again; the first stages first, as they have most
/// micro-batches in flight. Where that is not enough, stages compute in less memory, each in the
/// same part of what it could do with. Of processes, each decides on its own stage, which changes
/// nothing of what it sends to others; messages come ahead of when they are read where the budget
/// has room for that.
///
/// Throws `BudgetError` naming the smallest budget for all, `ArgumentError` for a loop where
/// nothing is to be computed again.
PipelinePlan plan_pipeline(const PipelineRequest& request, PiecePrograms& programs);

}  // namespace palimpsest
