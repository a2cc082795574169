#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "strategy/parallel/partition/piece.h"
#include "strategy/parallel/pipeline/pipeline_schedule.h"

namespace palimpsest {

/// Memory for what one piece makes, or is the first to read of what another process makes, and
/// others read, the last of them another piece or the same: micro-batch m has place m modulo their
/// number.
struct Ring {
  PieceId first;
  PieceId last;
  int places;
  bool is_received;  ///< from other processes
  Bytes bytes = 0;   ///< of a place
  Bytes begin = 0;   ///< in the block

  Bytes place_of(int micro_batch) const { return begin + micro_batch % places * bytes; }
};

/// Where a value lies.
struct RingPlace {
  static constexpr std::size_t nowhere = -1;  ///< for what goes to whoever runs the pipeline

  std::size_t ring = nowhere;
  Bytes offset = 0;
};

/// All that a piece of one process makes for those of another one that reads it first in piece
/// `to`: sent when piece `from` has run, in each micro-batch.
struct StageMessage {
  PieceId from;
  PieceId to;
  struct Part {
    RingPlace place;
    Bytes bytes;  ///< whole cache lines
  };
  std::vector<Part> parts{};  ///< in one order on both sides
};

/// A piece, how it is run, and where its arguments and results lie.
struct PlacedPiece {
  Piece piece{};
  std::shared_ptr<const StepProgram> program = nullptr;
  std::vector<RingPlace> arguments{};
  std::vector<RingPlace> results{};

  struct Taken {
    std::size_t parameter;
    RingPlace place;
  };
  std::vector<Taken> taken{};            ///< gradients that are added up when it has run
  std::vector<StageMessage> received{};  ///< before it runs
  std::vector<StageMessage> sent{};
};

/// Where pieces lay what they hand to each other.
struct PipelineLayout {
  std::vector<Ring> rings;
  Bytes bytes = 0;                   ///< of all rings
  std::vector<int> gradient_stages;  ///< by parameter: the stage that has its gradient in the end
  std::vector<int> outcome_stages;   ///< by program
};

/// What is to be laid out.
struct LayoutRequest {
  const PipelineOrder& order;
  bool sums_gradients;  ///< of several micro-batches; otherwise they are made where they stay
  /// The stage whose rings are laid out, where the others are other processes'; or all.
  std::optional<int> stage;
  /// Where there is one: the pieces of each program as all processes know them, whatever each
  /// decides on its own stage. They say what is sent.
  std::span<const std::vector<Piece>> common;
  bool receives_ahead;  ///< a message may come, and another go, while a micro-batch is computed
};

/// Gives what pieces hand to each other places, the same for all programs, whose pieces are given
/// one vector each. A gradient that micro-batches make in different stages is taken by the first of
/// these. Between processes a value lies on both sides: with the one that makes it until it is
/// sent, and with each that reads it from then on.
PipelineLayout lay_out(const LayoutRequest& request, std::span<std::vector<PlacedPiece>> programs);

}  // namespace palimpsest
