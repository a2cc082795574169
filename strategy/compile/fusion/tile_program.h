#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "autodiff/kernels/kernels.h"
#include "autodiff/operation.h"
#include "autodiff/operations/strided.h"
#include "autodiff/tape.h"

namespace palimpsest {

/// Elementwise nodes, and reductions of what they make, carried out in one pass: tile after tile
/// goes through all of them while it is in the cache, and only what others read is written to
/// memory.
///
/// A small register program, interpreted per tile. Its instructions are the kernels the nodes run
/// by themselves, or two or three steps of arithmetic at once with the same roundings, so that
/// every element has the same bits, however it is cut into tiles. Numbers of 16-bit types are f32
/// in tiles, rounded after every operation, where the kernels do not take them as they are.
class TileProgram {
 public:
  /// Names an operand of an instruction.
  using Slot = std::uint32_t;
  /// Holds one element of any dtype.
  struct alignas(8) Number {
    std::array<std::byte, 8> bytes;
  };

  /// A program over `elements` elements.
  explicit TileProgram(std::int64_t elements) : elements_(elements) {}

  /// Elements of inputs, one stretch after the other.
  struct Part {
    std::int64_t begin;
    std::int64_t end;
    std::uint32_t input;  ///< `none`: `made`, or else `number`, in every place
    Gather from;          ///< of the stretch's elements among the input's
    double number = 0;
    Slot made = none;  ///< a number that a node makes, computed without inputs
  };
  Slot load(std::vector<Part> parts, DType dtype);
  /// What `node`, whose kernel does with 16-bit types what `half` says, makes of `inputs`, or of
  /// none when it makes one number for all elements. It is written to output `output`, or to none
  /// and then is read by later instructions only.
  Slot compute(NodeId node, PointwiseKernel kernel, HalfSupport half, DType dtype,
               std::span<const Slot> inputs, std::uint32_t output);
  /// What `node`, a reduction, makes of `input`, which an instruction makes, is written to output
  /// `output`. All reductions of a program are of equally many elements.
  void fold(NodeId node, const FoldKernel& kernel, Slot input, std::uint32_t output);
  /// Makes the number of a node that makes one here of `given(node)`, unless that is null, whatever
  /// the tape holds.
  void give(const std::function<const Attributes*(NodeId)>& given);
  /// Joins steps of arithmetic and gives slots that are no longer read to later ones; to be called
  /// once, after the last instruction.
  void finish();

  /// After `finish`, true when output `output` may lie where input `input` does, as far as the
  /// program goes: every tile of the input is read before the output's is written there, and only
  /// then. Their elements have to be of one dtype, and as many.
  bool may_write_over(std::uint32_t output, std::uint32_t input) const;

  /// How many numbers the nodes were given, or make.
  std::uint32_t number_count() const { return numbers_; }
  /// Writes these to `numbers`, of nodes with the attributes that `tape` holds.
  void make_numbers(const Tape& tape, std::span<Number> numbers) const;

  /// Bytes of scratch for `threads` threads.
  Bytes workspace(int threads) const;
  /// Runs the program with numbers that `make_numbers` made of this tape.
  void run(const Tape& tape, std::span<const Operand> inputs, std::span<const Operand> outputs,
           std::span<const Number> numbers, std::span<std::byte> workspace, int threads) const;

 private:
  enum class Place : std::uint8_t { input, output, number, tile };
  struct SlotInfo {
    Place place;
    std::uint32_t index;      // of the input, the output, the number or, in the workspace, the tile
    DType dtype;              // of the value
    DType held = dtype;       // what it is here: f32, where a number of 16 bits is wide
    std::int64_t step = 1;    // 0 when every element is the same one
    std::int64_t offset = 0;  // of the first element, in an input
    Slot other = none;        // the same numbers wide, or narrow

    std::int64_t element_bytes() const { return size_of(held); }
  };
  /// Where the first element of a slot lies: bytes behind the numbers, the tiles, an output or an
  /// input, in this order. `move` leads to the next one's place, in a tile not at all.
  struct Address {
    std::uint32_t base = 0;
    std::int64_t offset = 0;
    std::int64_t move = 0;
  };
  /// A number that a node was given, and the slot it is read from.
  struct Given {
    Slot slot;
    NodeId node;
    void (*write)(const Attributes& attributes, std::byte* to);
  };
  /// A number that a node makes of what it was given, or of `given`, and the slot it is written to.
  struct Constant {
    PointwiseKernel kernel;
    NodeId node;
    Slot output;
    Attributes given = {};
  };
  /// Rounds f32 to a 16-bit type, in place.
  using Rounding = void (*)(float* x, std::int64_t n);
  struct Instruction {
    PointwiseKernel kernel;
    ArithmeticKernel joined = nullptr;           ///< what runs instead of `kernel`
    std::array<ArithmeticStep, 3> arithmetic{};  ///< what that does
    DType dtype;                                 ///< of the output
    Rounding round = nullptr;                    ///< of what `kernel` makes, where that is wide
    NodeId node;
    Slot output;
    std::uint32_t input_count;
    std::array<Slot, 4> inputs{};
    std::array<std::int64_t, 4> steps{};  ///< of the inputs, in elements
    std::array<Address, 4> from{};
    Address to{};
  };
  /// An input of an instruction.
  struct Reader {
    std::size_t instruction;
    std::size_t input;
  };
  struct Load {
    Slot slot;
    DType dtype;
    std::vector<Part> parts;
    std::vector<Reader> readers = {};
    Address tile = {};
  };
  struct Fold {
    FoldKernel kernel;
    NodeId node;
    Slot input;
    std::uint32_t output;
    Address from = {};
  };
  /// One element, and the tile it fills, or is put in as the first, perhaps wide.
  struct Spread {
    Slot one;
    Slot tile;
    Address from = {};
    Address to = {};
  };
  /// How the elements are cut for several threads: the segments of reductions, or elements.
  struct Cut {
    std::int64_t count;     ///< of parts
    std::int64_t grain;     ///< parts worth a task
    std::int64_t elements;  ///< of a result; all of them without reductions
    std::int64_t segment;   ///< of a part
    std::int64_t segments;  ///< of a result

    std::int64_t begin(std::int64_t part) const {
      return part / segments * elements + part % segments * segment;
    }
    std::int64_t part(std::int64_t element) const {
      return element / elements * segments + element % elements / segment;
    }
  };
  class Run;

  Slot add(SlotInfo slot);
  Slot spread(Slot slot);
  Slot wide(NodeId node, Slot slot);
  Slot narrow(NodeId node, Slot slot, std::uint32_t output = none);
  Slot convert(NodeId node, Slot slot, const SlotInfo& to);
  static Rounding rounding_to(DType dtype);
  void leave_out_roundings();
  void join_arithmetic();
  bool join(Instruction& last, std::size_t input, const Instruction& before);
  bool add_second(Instruction& last, ArithmeticStep end, std::size_t other,
                  const Instruction& before);
  bool add_third(Instruction& last, ArithmeticStep end, std::size_t other,
                 const Instruction& before);
  std::int64_t step_of(const Instruction& instruction, std::size_t input) const;
  Slot operand(const Instruction& instruction, std::size_t input);
  void place_tiles();
  Address address(Slot slot) const;
  void resolve();
  void find_seams();
  void cut();
  Bytes tile_bytes() const;
  Bytes share() const;
  Bytes totals() const;
  /// Writes a result of a fold, made of the totals of its segments.
  void finish(const Fold& fold, const Tape& tape, std::byte* totals, const Operand& output,
              std::int64_t result) const;

  std::int64_t elements_;
  std::vector<SlotInfo> slots_;
  std::vector<Load> loads_;
  std::vector<Spread> spread_;  // filled once for all tiles of a thread's part
  std::vector<Given> given_;
  std::vector<Constant> constants_;
  std::vector<Instruction> instructions_;
  std::vector<Fold> folds_;
  std::uint32_t numbers_ = 0;
  std::uint32_t tiles_ = 0;  // in the workspace
  std::uint32_t outputs_ = 0;
  std::int64_t tile_elements_ = 0;
  std::vector<std::int64_t> seams_;  // elements that a tile begins with
  Cut cut_{};
  std::int64_t widest_ = 1;  // bytes of the elements of any slot
};

}  // namespace palimpsest
