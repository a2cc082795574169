#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "strategy/compile/buffer_program.h"
#include "strategy/parallel/partition/piece.h"
#include "strategy/parallel/pipeline/pipeline_schedule.h"

namespace palimpsest {

/// A ring buffer for values passed between pieces. Piece `first` makes them or, for values of
/// another process, is the first to read them here. Piece `last`, which may be the same, is the
/// last to read them. Micro-batch m uses place m modulo the number of places.
struct Ring {
  PieceId first;
  PieceId last;
  int places;
  bool is_received;  ///< comes from other processes
  Bytes bytes = 0;   ///< bytes of one place
  Bytes begin = 0;   ///< offset in the block

  Bytes place_of(int micro_batch) const { return begin + micro_batch % places * bytes; }
};

/// Where a value is stored.
struct RingPlace {
  static constexpr std::size_t nowhere = -1;  ///< for results that go to the caller

  std::size_t ring = nowhere;
  Bytes offset = 0;
};

/// Everything that a piece of one process makes for the pieces of another one that read it first in
/// piece `to`. It is sent after piece `from` has run, in each micro-batch.
struct StageMessage {
  PieceId from;
  PieceId to;
  struct Part {
    RingPlace place;
    Bytes bytes;  ///< a multiple of the cache line
  };
  std::vector<Part> parts{};  ///< in the same order on both sides
};

/// A piece, the program that runs it, and where its arguments and results are stored.
struct PlacedPiece {
  Piece piece{};
  BufferProgramPtr program = nullptr;
  std::vector<RingPlace> arguments{};
  std::vector<RingPlace> results{};

  struct Taken {
    std::size_t parameter;
    RingPlace place;
  };
  std::vector<Taken> taken{};            ///< gradients to add up after it has run
  std::vector<StageMessage> received{};  ///< before it runs
  std::vector<StageMessage> sent{};
};

/// Where pieces store the values that they pass to each other.
struct PipelineLayout {
  std::vector<Ring> rings;
  Bytes bytes = 0;                   ///< of all rings
  std::vector<int> gradient_stages;  ///< by parameter: the stage that has its gradient at the end
  std::vector<int> outcome_stages;   ///< by program
  std::vector<std::vector<int>> output_stages;  ///< by program and output
};

/// The input of `lay_out`.
struct LayoutRequest {
  const PipelineOrder& order;
  /// Several micro-batches are summed; a single one writes gradients to their final place.
  bool sums_gradients;
  /// The stage whose rings are laid out, when other processes run the other stages; empty for all.
  std::optional<int> stage;
  /// With several processes: the pieces of each program as all processes know them, whatever each
  /// decides for its own stage. They define what is sent.
  std::span<const std::vector<Piece>> common;
  bool receives_ahead;  ///< messages are received and sent while a micro-batch is computed
};

/// Assigns places to the values that pieces pass to each other. All programs share the places; each
/// program's pieces are one vector. A parameter whose gradient is made in different stages,
/// depending on the micro-batch, is summed by the first of these stages. Between processes a value
/// is stored on both sides: the sender stores it until it is sent, each receiver from then on.
PipelineLayout lay_out(const LayoutRequest& request, std::span<std::vector<PlacedPiece>> programs);

}  // namespace palimpsest
