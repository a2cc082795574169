#pragma once

#include <memory>
#include <span>
#include <vector>

#include "strategy/execution/execution_strategy.h"
#include "strategy/pieces/piece_programs.h"
#include "strategy/pipeline/cut_program.h"
#include "strategy/pipeline/pipeline_schedule.h"
#include "strategy/report.h"

namespace palimpsest {

/// Memory for what one piece makes and others read, the last of them another piece or the same:
/// micro-batch m has place m modulo their number.
struct Ring {
  PieceId first;
  PieceId last;
  Bytes bytes = 0;  ///< of a place
  int places = 0;
  Bytes begin = 0;  ///< in the block

  Bytes place_of(int micro_batch) const { return begin + micro_batch % places * bytes; }
};

/// A piece, how it is run, and where its arguments and results lie.
struct PlacedPiece {
  struct Place {
    std::size_t ring;  ///< `nowhere` for a result that goes to whoever runs the pipeline
    Bytes offset;
  };
  static constexpr std::size_t nowhere = -1;

  Piece piece;
  std::shared_ptr<const StepProgram> program;
  std::vector<Place> arguments;
  std::vector<Place> results;
};

/// How the stages of a pipeline run, in one block of memory.
struct PipelinePlan {
  std::vector<std::vector<PlacedPiece>> programs;  ///< the pieces of each
  std::vector<Ring> rings;
  std::vector<Bytes> workspaces;  ///< by stage: for one of its pieces at a time
  std::vector<Bytes> workspace_begins;
  Bytes block = 0;
  /// Gradients of a micro-batch are taken when its last piece has run, as micro-batches make those
  /// of a parameter in different stages.
  bool collects_at_end = false;
  Bytes predicted_peak = 0;  ///< the block, and what lies beside it
  Bytes keep_all_peak = 0;   ///< of a plan that computes nothing again
  Bytes budget = unlimited;
  double seconds = 0;                            ///< of a micro-batch in all stages, by the machine
  double keep_all_seconds = 0;                   ///< of a plan that computes nothing again
  std::vector<std::uint32_t> keep_all_computed;  ///< by program: nodes that such a plan runs
  std::vector<Report::Stage> stages;
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
};

/// Decides what stages keep between the forward and the backward part of a micro-batch: all that
/// adjoints read or, where the mode asks for it or the budget leaves no room, what comes in, from
/// which the forward part is computed again; the first stages first, as they have most
/// micro-batches in flight. Where that is not enough, stages compute in less memory, each in the
/// same part of what it could do with.
///
/// Throws `BudgetError` naming the smallest budget for all, `ArgumentError` for a loop where
/// nothing is to be computed again.
PipelinePlan plan_pipeline(const PipelineRequest& request, PiecePrograms& programs);

}  // namespace palimpsest
