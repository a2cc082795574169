#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace palimpsest {

class Tape;

/// A program that one operation of a tape runs, such as a step of a loop, and values of it.
struct InnerProgram {
  std::shared_ptr<Tape> tape;
  std::vector<std::uint32_t> values;
};
/// Makes the program that an operation runs of the one that was recorded for it. Leaves at the
/// beginning stay values 0, 1, … and the values have the types they had.
using InnerRewrite = std::function<InnerProgram(InnerProgram recorded)>;

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
  /// Makes the programs that loops and checkpoints run which are recorded on this evaluator's
  /// tapes. Null: they run what was recorded.
  virtual InnerRewrite inner() const { return nullptr; }
};

/// `inner` of an evaluator that may be null.
inline InnerRewrite inner_of(const std::shared_ptr<Evaluator>& evaluator) {
  return evaluator == nullptr ? nullptr : evaluator->inner();
}

}  // namespace palimpsest
