#pragma once

#include <list>
#include <memory>
#include <vector>

#include "strategy/compile/fusion/lowered_store.h"
#include "strategy/evaluators/engine.h"

namespace palimpsest {

/// Losses that were recorded, differentiated and run before. One that is recorded once more is run
/// again as it is, without recording its gradients. Kept are four at most, and `most_cached` bytes
/// unless the last two take more.
class KnownSteps {
 public:
  struct Step {
    Tape tape;  ///< holds no values but leaves of the backward part
    Differentiated recorded;
    std::vector<ValueId> targets;
    std::vector<ValueId> leaves;  ///< of the forward part
    /// What was made of the tape for `threads` threads, and by what it was planned.
    std::shared_ptr<LoweredStore::Program> program;
    int threads = 0;
    Machine machine = {};
    std::uint64_t costs = 0;  ///< the hash of a profile; 0 without one
  };

  /// The step whose forward part is what `tape` holds, on which nothing but leaves and the loss may
  /// be present; null when there is none. It is there until the next call of `add`.
  Step* find(const Tape& tape, ValueId loss);
  /// Copies `tape`, which holds both parts, unless it holds operations of users, whose attributes
  /// may not come again; ever more seldom while no step is found again.
  void add(const Tape& tape, const Differentiated& recorded);
  /// Bytes that are kept, about; programs are counted where they were found.
  Bytes bytes() const;

 private:
  std::list<Step> steps_;   // most recently used first
  std::uint32_t vain_ = 0;  // steps added since one was found
  std::uint32_t passed_over_ = 0;
};

/// While it lives, a known step has the leaves of a tape that records the same; then it holds
/// nothing of theirs, nor of what was made of them.
class LentToStep {
 public:
  LentToStep(KnownSteps::Step& step, const Tape& tape) : step_(step) {
    for (const ValueId leaf : step.leaves) step.tape.set_buffer(leaf, tape.buffer(leaf));
  }
  ~LentToStep() {
    for (const ValueId leaf : step_.leaves) step_.tape.set_buffer(leaf, nullptr);
    for (const ValueId target : step_.targets) step_.tape.drop(target);
  }
  LentToStep(const LentToStep&) = delete;
  LentToStep& operator=(const LentToStep&) = delete;

 private:
  KnownSteps::Step& step_;
};

}  // namespace palimpsest
