#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace palimpsest {

class Tape;

/// A program that one operation of a tape runs, such as a step of a loop.
struct InnerProgram {
  std::shared_ptr<Tape> tape;
  std::vector<std::uint32_t> values;  ///< that it is given or returns
};

/// Decides when values of a tape are computed. The tape calls it; `strategy/` implements it.
class Evaluator {
 public:
  virtual ~Evaluator() = default;

  /// A node was appended; an eager evaluator computes it now. When this throws, the node is taken
  /// off the tape again.
  virtual void on_record(Tape& tape, std::uint32_t node) = 0;
  /// Makes `value` present on the tape.
  virtual void compute(Tape& tape, std::uint32_t value) = 0;
  /// The tape is about to forget its nodes and values, this evaluator, or both as it is destroyed.
  virtual void on_clear(Tape& tape) noexcept = 0;
  /// The program that operations of this evaluator's tapes run in place of the one that was
  /// recorded. Its leaves come first and in the same order; its values have the types they had.
  virtual InnerProgram inner(InnerProgram recorded) { return recorded; }
};

}  // namespace palimpsest
