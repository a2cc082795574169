#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "autodiff/export.h"
#include "autodiff/tensor.h"

namespace palimpsest PALIMPSEST_EXPORT {

class Tape;

/// A program that one operation of a tape runs, such as the body of a loop, and some of its values.
struct InnerProgram {
  std::shared_ptr<Tape> tape;
  std::vector<std::uint32_t> values;
};
/// Rewrites the program recorded for an operation into the one that it runs. Leaves at the
/// beginning keep the ids 0, 1, … and the values keep their types.
using InnerRewrite = std::function<InnerProgram(InnerProgram recorded)>;

/// Decides when the values of a tape are computed. The tape calls it; `strategy/` implements it.
class Evaluator {
 public:
  virtual ~Evaluator() = default;

  /// A node was appended; an eager evaluator computes it now. If this throws, the node is removed
  /// from the tape again.
  virtual void on_record(Tape& tape, std::uint32_t node) = 0;
  /// Makes the values present on the tape, all at once.
  virtual void compute(Tape& tape, std::span<const std::uint32_t> values) = 0;
  /// Memory to run something in addition to the tape's values: a step of a loop that reads a value
  /// while it is recorded. `held` are the bytes of values that it reads. `plan` returns the bytes
  /// that it takes if it is planned within a budget, and throws `BudgetError` if that is too small.
  /// An evaluator with a budget plans it within the bytes that its values leave. If these are too
  /// few, it drops the values. Null: the caller allocates the memory without a budget.
  virtual Buffer room_beside(Tape& tape, Bytes held,
                             const std::function<Bytes(Bytes budget)>& plan) {
    (void)tape;
    (void)held;
    (void)plan;
    return nullptr;
  }
  /// The tape is about to clear its nodes and values, to replace this evaluator, or to be
  /// destroyed.
  virtual void on_clear(Tape& tape) noexcept = 0;
  /// True if the values are those that the leaves had when they were computed, as they are
  /// recorded. A run that needs a value from an older version of a leaf then throws `TapeError`.
  /// False: it computes the value again.
  virtual bool keeps_recorded() const { return false; }
  /// Rewrites the programs of loops and checkpoints recorded on this evaluator's tapes. Null: they
  /// run as recorded.
  virtual InnerRewrite inner() const { return nullptr; }
};

/// `inner` of an evaluator that may be null.
inline InnerRewrite inner_of(const std::shared_ptr<Evaluator>& evaluator) {
  return evaluator == nullptr ? nullptr : evaluator->inner();
}

}  // namespace palimpsest
