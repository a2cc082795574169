#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "strategy/compile/program_spec.h"

namespace palimpsest {

struct CachedProgram;

/// A loss, auxiliary outputs, and gradients with respect to all parameters, recorded at the end of
/// a tape.
struct Differentiated {
  std::vector<ValueId> values;  ///< the loss and the outputs that are not leaves
  NodeId backward_begins;
  std::vector<ValueId> gradients;
};

/// A copy of a tape that was differentiated and run.
class CachedStep {
 public:
  Tape tape;  ///< holds no values except leaves of the backward part
  Differentiated recorded;
  std::vector<ValueId> targets;  ///< the values and the gradients
  std::vector<ValueId> leaves;   ///< of the forward part
  std::uint64_t labels_hash;     ///< of names and lines, which do not change

  /// The program last compiled from the tape, if it was for a matching spec. Null otherwise.
  std::shared_ptr<CachedProgram> program_for(const ProgramSpec& spec) const;
  void remember(const ProgramSpec& spec, std::shared_ptr<CachedProgram> compiled);

 private:
  std::shared_ptr<CachedProgram> program_;
  int threads_ = 0;
  Machine machine_ = {};
  std::uint64_t costs_ = 0;  // hash of a profile; 0 without one
};

/// Steps that are run again without being differentiated again, found by their recorded forward
/// part. Keeps at most four, and at most `most_cached` bytes unless the last two take more.
class StepCache {
 public:
  /// Finds the step whose forward part `tape` holds. Null when there is none. The result is valid
  /// until the next call of `add`.
  CachedStep* find(const Tape& tape, std::span<const ValueId> values);
  /// Notes that a step is run again.
  void use(const CachedStep& step);
  /// Copies `tape`, which holds both parts. Does nothing if it holds users' operations, whose
  /// attributes may not recur. Copies less and less often while no step is found again.
  void add(const Tape& tape, const Differentiated& recorded);
  /// Approximate bytes kept, without programs.
  Bytes bytes() const;

 private:
  std::list<CachedStep> steps_;  // most recently used first
  std::uint32_t unused_ = 0;     // steps added since one was found
  std::uint32_t passed_over_ = 0;
};

/// Lends the leaves of a tape to a step that records the same, until the end of the scope.
/// Afterwards the step holds neither these nor what was computed from them.
class LentToStep {
 public:
  LentToStep(CachedStep& step, const Tape& tape) : step_(step) {
    for (const ValueId leaf : step.leaves) step.tape.set_buffer(leaf, tape.buffer(leaf));
  }
  ~LentToStep() {
    for (const ValueId leaf : step_.leaves) step_.tape.set_buffer(leaf, nullptr);
    for (const ValueId target : step_.targets) step_.tape.drop(target);
  }
  LentToStep(const LentToStep&) = delete;
  LentToStep& operator=(const LentToStep&) = delete;

 private:
  CachedStep& step_;
};

}  // namespace palimpsest
