#pragma once

#include <string>
#include <vector>

#include "strategy/compile/fusion/fused_kernel.h"
#include "strategy/compile/native/element_walk.h"

namespace palimpsest {

/// A fused kernel, in the form from which its C code is written.
class GroupParts {
 public:
  /// With `literals`, the code names numbers of the group where that makes it faster.
  GroupParts(const FusedKernel& kernel, const Tape& tape, bool literals);

  /// An operand of operations. Its name in the code is `name(slot)`.
  struct Value {
    enum class Kind : std::uint8_t {
      number,    ///< one of the group's constants: `index`
      repeated,  ///< element `offset` of input `index`, for all elements
      input,     ///< input `index`, from element `offset` on
      output,    ///< output `index`
      load,      ///< read through an access map: `index` of `loads`
      made,      ///< by an operation, for later operations
      spread,    ///< one value in every element: that of slot `index`
    } kind;
    std::uint32_t index = 0;
    std::int64_t offset = 0;
    DType dtype = DType::f64;
  };
  /// A number that the code names.
  struct Literal {
    std::uint32_t slot;
    FusedKernel::Number number;
    double value;
  };
  /// An operation on elements: a C expression of the names of its inputs, or a call of its kernel.
  struct Operation {
    std::string formula;  ///< empty for a call
    void (*kernel)(const PointwiseCall&);
    NodeId node;
    std::uint32_t output;
    std::vector<std::uint32_t> inputs;  ///< slots; the number of a formula too
    std::vector<std::int64_t> steps;    ///< of a call
  };
  struct Fold {
    FoldKernel kernel;
    NodeId node;
    std::uint32_t input;   ///< slot
    std::uint32_t output;  ///< index of the output
    DType result;
    bool is_sum;         ///< sums elements in the order of `PieceFold`
    bool returns_total;  ///< the result is the total itself
  };
  /// The source of a range of a load: an input, a constant of the group, or a literal number.
  struct Part {
    std::uint32_t input = none;
    std::uint32_t number = none;  ///< slot
    double literal = 0;
  };
  struct Load {
    DType dtype;
    std::vector<LoadedPart> parts;  ///< `part` is an index of `part_list`
  };

  static std::string name(std::uint32_t slot) { return "v" + std::to_string(slot); }

  /// True if the code is better inlined, so that values need not pass through memory.
  bool is_small() const { return elements <= most_inlined; }
  static constexpr std::int64_t most_inlined = 16;
  static constexpr std::int64_t smallest_strip = 256;  ///< elements
  static constexpr std::int64_t largest_strip = 1024;  ///< unless a piece of a reduction is larger

  /// Bytes of an element of the widest dtype.
  std::int64_t widest_bytes() const;
  /// True if no strip, and no thread's share, begins or ends inside a row of so many elements.
  bool keeps_whole(std::int64_t row) const;

  std::int64_t elements = 0;
  std::vector<Value> values;  ///< by slot
  std::vector<Literal> literals;
  std::vector<Operation> operations;
  std::vector<Fold> folds;
  std::vector<Load> loads;
  std::vector<Part> part_list;
  std::vector<std::int64_t> periods;  ///< lengths of rows and planes, for `element_walk`
  /// How the elements are divided among calls: elements that are reduced together, and those of
  /// their segments.
  std::int64_t reduced_elements = 0;
  std::int64_t segment = 0;
  std::int64_t segments = 1;
  bool is_one_call = true;  ///< all elements in one call
  std::string problem;      ///< why there is no code; empty if there is

 private:
  void add_values(const FusedKernel& kernel);
  void add_loads(const FusedKernel& kernel);
  void add_operations(const FusedKernel& kernel, const Tape& tape);
  void add_folds(const FusedKernel& kernel, const Tape& tape);
  void add_literals(const FusedKernel& kernel, const Tape& tape);
  void add_periods(const FusedKernel& kernel, const Tape& tape);
  std::string operand(std::uint32_t slot) const;
};

}  // namespace palimpsest
