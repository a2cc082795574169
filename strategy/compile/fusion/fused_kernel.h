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

/// A fused kernel: elementwise nodes, and reductions of their results, carried out in one pass.
/// Tile after tile passes through all nodes while it is in the cache. Only values that others read
/// are written to memory.
///
/// The kernel is a small register program that is interpreted per tile. An instruction is the
/// kernel that the node would run by itself, or two or three arithmetic steps at once with the same
/// roundings. So every element has the same bits, whatever the tiles. Within tiles, 16-bit types
/// are held as f32 and rounded after every operation, unless the kernels read them directly.
class FusedKernel {
 public:
  /// Identifies an operand of an instruction.
  using Slot = std::uint32_t;
  /// Storage for one element of any dtype.
  struct alignas(8) Number {
    std::array<std::byte, 8> bytes;
  };

  /// A program over `elements` elements.
  explicit FusedKernel(std::int64_t elements) : elements_(elements) {}
  std::int64_t elements() const { return elements_; }

  /// A range of elements to load. The parts of a load follow each other.
  struct Part {
    std::int64_t begin;
    std::int64_t end;
    std::uint32_t input;  ///< `none`: the constant `made` or, without that, `number`
    Gather from;          ///< access map: from the range's elements to the input's
    double number = 0;
    Slot made = none;  ///< a constant that a node computes without inputs

    bool operator==(const Part&) const = default;
  };
  /// `period` as in `AccessMap`. Equal parts have one slot.
  Slot load(std::vector<Part> parts, std::int64_t period, DType dtype);
  /// Appends `node`, applied to `inputs`; without inputs it makes one number for all elements.
  /// `half` says how the kernel handles 16-bit types. The result is written to output `output`.
  /// With `none` only later instructions read it.
  Slot compute(NodeId node, PointwiseKernel kernel, HalfSupport half, DType dtype,
               std::span<const Slot> inputs, std::uint32_t output);
  /// Appends a reduction. `input` is made by an instruction; the result of `node` is written to
  /// output `output`. All reductions of a program have an equal number of elements and columns.
  void fold(NodeId node, const FoldKernel& kernel, Slot input, std::uint32_t output);
  /// Sets the attributes of nodes that make a constant here to `given(node)`, where that is not
  /// null. The attributes on the tape are then ignored.
  void give(const std::function<const Attributes*(NodeId)>& given);
  /// Fuses arithmetic steps and reuses slots that are no longer read. Call it once, after the last
  /// instruction.
  void finish();

  /// Buffer donation, to be called after `finish`: true when the program allows output `output` to
  /// be stored where input `input` is. Then every tile of the input is read before the same tile of
  /// the output is written. The caller must check that both have the same dtype and number of
  /// elements.
  bool may_write_over(std::uint32_t output, std::uint32_t input) const;

  /// Number of constants that nodes are given or make.
  std::uint32_t number_count() const { return numbers_; }
  /// Writes these constants to `numbers`, from the attributes on `tape`.
  void make_numbers(const Tape& tape, std::span<Number> numbers) const;

  /// Machine code that computes elements [begin, end) with the same bits (strategy/compile/native).
  using Code = void (*)(const std::byte* const* inputs, std::byte* const* outputs,
                        const Number* numbers, const void* const* table, std::byte* totals,
                        std::int64_t begin, std::int64_t end);
  /// Code, and the functions and attributes that it uses.
  struct Compiled {
    Code code;
    const void* const* table;
  };

  /// A number of elements that is a whole number of cache lines for every dtype. Threads' shares
  /// begin at multiples of it, unless reductions divide them.
  static constexpr std::int64_t line = 64;

  /// A hash of what its code depends on, apart from the operations: sizes, dtypes and what is read.
  std::uint64_t layout_hash() const;

  /// Bytes of scratch for `threads` threads.
  Bytes workspace(int threads) const;
  /// Runs the program. `numbers` must come from `make_numbers` with the same tape. With `compiled`,
  /// that code replaces the interpreter.
  void run(const Tape& tape, std::span<const Operand> inputs, std::span<const Operand> outputs,
           std::span<const Number> numbers, std::span<std::byte> workspace, int threads,
           const Compiled* compiled = nullptr) const;
  /// True when `run` calls `Compiled::code` once for all elements and does nothing after it.
  bool is_one_call() const {
    return cut_.count <= cut_.grain && (folds_.empty() || cut_.segments == 1);
  }

 private:
  friend class GroupParts;

  enum class Place : std::uint8_t { input, output, number, tile };
  struct SlotInfo {
    Place place;
    std::uint32_t index;      // index of the input, output or number, or of the tile in the
                              // workspace
    DType dtype;              // of the value
    DType held = dtype;       // dtype stored here: f32 where a 16-bit value is widened
    std::int64_t step = 1;    // 0 when all elements are the same
    std::int64_t offset = 0;  // of the first element, in an input
    Slot other = none;        // the slot with the same values in the other width

    std::int64_t element_bytes() const { return size_of(held); }
  };
  /// The address of a slot's first element. `base` selects the numbers, the tiles, an output or an
  /// input, in this order. `move` is the distance of its elements in bytes; 0 in a tile.
  struct Address {
    std::uint32_t base = 0;
    std::int64_t offset = 0;
    std::int64_t move = 0;
  };
  /// A number from the attributes of a node, and its index.
  struct Given {
    std::uint32_t number;
    NodeId node;
    void (*write)(const Attributes& attributes, std::byte* to);
  };
  /// A number that a node makes from its attributes or, if not empty, from `given`, and its slot.
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
    ArithmeticKernel joined = nullptr;           ///< replaces `kernel`
    std::array<ArithmeticStep, 3> arithmetic{};  ///< the steps of `joined`
    DType dtype;                                 ///< of the output
    Rounding round = nullptr;                    ///< rounds a wide result of `kernel`
    NodeId node;
    Slot output;
    std::uint32_t input_count;
    std::array<Slot, 4> inputs{};
    std::array<std::int64_t, 4> steps{};  ///< element strides of the inputs
    std::array<Address, 4> from{};
    Address to{};
    Slot number = none;  ///< the number in the attributes of its node, if `kernel` uses one
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
    std::int64_t period;  ///< the parts repeat after so many elements
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
  /// An element that is copied to all elements of a tile, or only to the first, perhaps widened.
  struct Spread {
    Slot one;
    Slot tile;
    Address from = {};
    Address to = {};
  };
  /// How the elements are divided among threads: by segments of reductions, or by elements.
  struct Cut {
    std::int64_t count;     ///< number of parts
    std::int64_t grain;     ///< parts per task
    std::int64_t elements;  ///< reduced together; all elements without reductions
    std::int64_t segment;   ///< elements per part
    std::int64_t segments;  ///< parts of elements that are reduced together

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
  void find_numbers();
  void place_tiles();
  Address address(Slot slot) const;
  void resolve();
  void find_seams();
  void cut();
  Bytes tile_bytes() const;
  Bytes fold_bytes() const;
  Bytes share() const;
  Bytes totals() const;
  /// Writes the results of the reduced elements number `group`, combined from the totals of their
  /// segments. `scratch` has room for the results in f32.
  void finish(const Fold& fold, const Tape& tape, std::byte* totals, const Operand& output,
              std::int64_t group, std::byte* scratch) const;

  std::int64_t elements_;
  std::vector<SlotInfo> slots_;
  std::vector<Load> loads_;
  std::vector<Spread> spread_;  // filled once per thread, before its first tile
  std::vector<Given> given_;
  std::vector<Constant> constants_;
  std::vector<Instruction> instructions_;
  std::vector<Fold> folds_;
  std::uint32_t numbers_ = 0;
  std::uint32_t tiles_ = 0;  // number of tiles in the workspace
  std::uint32_t outputs_ = 0;
  std::int64_t tile_elements_ = 0;
  std::vector<std::int64_t> seams_;  // elements at which a tile must begin
  Cut cut_{};
  std::int64_t widest_ = 1;  // bytes of the widest element of any slot
};

}  // namespace palimpsest
