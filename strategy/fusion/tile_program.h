#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "autodiff/operation.h"
#include "autodiff/operations/strided.h"
#include "autodiff/tape.h"

namespace palimpsest {

/// Elementwise nodes carried out in one pass: tile after tile goes through all of them while it is
/// in the cache, and only what others read is written to memory.
///
/// A small register program, interpreted per tile. Its instructions are the kernels the nodes run
/// by themselves, so that every element has the same bits, however it is cut into tiles.
class TileProgram {
 public:
  /// Names an operand of an instruction.
  using Slot = std::uint32_t;

  /// A program over `elements` elements.
  explicit TileProgram(std::int64_t elements) : elements_(elements) {}

  /// Elements of inputs, one stretch after the other.
  struct Part {
    std::int64_t begin;
    std::int64_t end;
    std::uint32_t input;  ///< `none`: `number` in every place
    Gather from;          ///< of the stretch's elements among the input's
    double number = 0;
  };
  Slot load(std::vector<Part> parts, DType dtype);
  /// What `node` makes of `inputs`, or of none when it makes one number for all elements. It is
  /// written to output `output`, or to none and then is read by later instructions only.
  Slot compute(NodeId node, PointwiseKernel kernel, DType dtype, std::span<const Slot> inputs,
               std::uint32_t output);
  /// Gives slots that are no longer read to later ones; to be called once, after the last
  /// instruction.
  void finish();

  /// Bytes of scratch for `threads` threads.
  Bytes workspace(int threads) const;
  /// Runs the program; `tape` holds the attributes of the nodes.
  void run(const Tape& tape, std::span<const Operand> inputs, std::span<const Operand> outputs,
           std::span<std::byte> workspace, int threads) const;

 private:
  enum class Place : std::uint8_t { input, output, number, tile };
  struct SlotInfo {
    Place place;
    std::uint32_t index;  // of the input, the output or, in the workspace, the number or tile
    std::int64_t element_bytes;
    std::int64_t step = 1;    // 0 when every element is the same one
    std::int64_t offset = 0;  // of the first element, in an input
  };
  struct Load {
    Slot slot;
    DType dtype;
    std::vector<Part> parts;
  };
  struct Instruction {
    PointwiseKernel kernel;
    NodeId node;
    Slot output;
    std::uint32_t input_count;
    std::array<Slot, 3> inputs;
  };
  class Run;

  Slot add(SlotInfo slot);
  Slot spread(Slot slot);
  std::int64_t grain() const;
  Bytes share() const;

  std::int64_t elements_;
  std::vector<SlotInfo> slots_;
  std::vector<Load> loads_;
  std::vector<std::pair<Slot, Slot>> spread_;  // one element, and the tile it fills
  std::vector<Instruction> constants_;         // made once for all tiles of a thread's part
  std::vector<Instruction> instructions_;
  std::uint32_t numbers_ = 0;  // in the workspace
  std::uint32_t tiles_ = 0;    // there, behind them
  std::int64_t tile_elements_ = 0;
  std::int64_t widest_ = 1;  // bytes of the elements of any slot
};

}  // namespace palimpsest
