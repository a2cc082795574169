#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "strategy/loops/loop_disk.h"
#include "strategy/loops/loop_memory.h"
#include "strategy/loops/state_codec.h"
#include "strategy/loops/step_program.h"
#include "strategy/loops/step_recorder.h"

namespace palimpsest {

/// A step program for each number of threads and each budget. Those made so far are kept while they
/// take no more than `most_cached` bytes.
class StepPrograms {
 public:
  StepPrograms(std::shared_ptr<Tape> tape, StepProgram::Wanted wanted);

  /// What running a step once takes, when it is planned in so many bytes.
  Cost cost(Bytes budget = unlimited) const;
  /// Throws `BudgetError` when no plan fits.
  std::shared_ptr<const StepProgram> get(int threads, Bytes budget = unlimited) const;
  /// The smallest budget found in which a plan fits.
  Bytes smallest(int threads) const;

 private:
  std::shared_ptr<Tape> tape_;
  StepProgram::Wanted wanted_;
  Cost cost_;
  mutable std::mutex mutex_;
  mutable std::map<std::pair<int, Bytes>, std::shared_ptr<const StepProgram>> programs_;
  mutable std::map<int, Bytes> smallest_;
  mutable Bytes bytes_ = 0;  // of programs, about
};

/// The program of a recorded step: its next state and, if asked for, its outputs.
StepProgram::Wanted program_of(const RecordedStep& step, bool with_outputs);
/// The program of its outputs alone.
StepProgram::Wanted program_of_outputs(const RecordedStep& step);

/// Throws `ArgumentError`, `ShapeError` or `DTypeError` when a step makes another state than it is
/// given, or records a parameter.
void require_state(const RecordedStep& step, const StepBody& body);

/// A loop that was recorded: everything but its node. Immutable.
class Loop {
 public:
  /// `steps` is of no account where there is a condition.
  Loop(StepBody body, RecordedStep step, std::optional<RecordedStep> condition,
       std::vector<Var> captured, std::uint32_t steps, const LoopOptions& options);

  /// True when the length is not known.
  bool has_condition() const { return condition_.has_value(); }
  /// How many; 0 where that is not known.
  std::uint32_t steps() const { return steps_; }
  const LoopOptions& options() const { return options_; }
  /// The first step, and in most loops all: without values but those of its constants.
  const RecordedStep& step() const { return step_; }
  const Tape& tape() const { return *step_.tape; }
  /// True when every step is recorded for itself, by `body`.
  bool is_recorded_again() const {
    return step_.may_differ() || (condition_ && condition_->may_differ());
  }
  const StepBody& body() const { return body_; }
  /// Values of the outer tape that steps use.
  const std::vector<Var>& captured() const { return captured_; }
  const StateBlock& state() const { return state_; }
  const StateCodec& codec() const { return codec_; }
  /// Null where states are held in memory only.
  const LoopDisk* disk() const { return disk_.get(); }
  /// From state, inputs, captured values and number to the next state and the outputs.
  const StepPrograms& forward() const { return forward_; }
  /// The same without the outputs.
  const StepPrograms& advance() const { return advance_; }
  /// Whether the loop goes on from a state; where there is a condition.
  const RecordedStep& condition() const { return *condition_; }
  const StepPrograms& goes_on() const { return *goes_on_; }
  /// How many steps it is taken to have where that is not known.
  std::uint32_t likely_steps() const { return has_condition() ? 1000 : steps_; }
  /// States to hold for the backward part, beside the first, where no budget says how many.
  std::uint32_t snapshots() const { return std::max(likely_steps(), 1u) - 1; }
  /// Types of values of the step's tape.
  std::vector<ValueType> types(std::span<const ValueId> values) const;

  std::size_t state_count() const { return step_.state.size(); }
  std::size_t input_count() const { return step_.inputs.size(); }
  std::size_t captured_count() const { return step_.captured.size(); }
  std::size_t output_count() const { return step_.outputs.size(); }
  /// State, inputs and captured values.
  std::size_t operand_count() const { return state_count() + input_count() + captured_count(); }

 private:
  StepBody body_;
  RecordedStep step_;
  std::optional<RecordedStep> condition_;
  std::vector<Var> captured_;
  std::uint32_t steps_;
  LoopOptions options_;
  StateBlock state_;
  StateCodec codec_;
  StepPrograms forward_;
  StepPrograms advance_;
  std::optional<StepPrograms> goes_on_;
  std::unique_ptr<const LoopDisk> disk_;
};

/// The derivative of a step, recorded behind it on its tape: the adjoints of what it reads from
/// those of what it makes.
struct StepGradient {
  StepProgram::Wanted program;
  std::vector<bool> untouched;  ///< by captured value asked for: the step adds nothing to it
};

/// The derivative of a loop.
class LoopGradient {
 public:
  /// Which adjoints there are, and which are asked for, by place among the loop's values; those of
  /// values that are not floating are neither.
  struct Wanted {
    std::vector<bool> next;      ///< the last state's adjoints that are given
    std::vector<bool> outputs;   ///< outputs whose adjoints are given
    std::vector<bool> state;     ///< adjoints of the first state to return
    std::vector<bool> inputs;    ///< inputs whose adjoints are to be returned
    std::vector<bool> captured;  ///< captured values whose adjoints are to be returned
  };
  LoopGradient(std::shared_ptr<const Loop> loop, Wanted wanted, const Where& where);

  /// Records the derivative of a step of the loop. The program goes from what a step reads, the
  /// adjoints of the next state (all that are carried), those of the outputs that are given and the
  /// sums so far, to the adjoints of the state, of the inputs asked for and the sums.
  StepGradient differentiate(const RecordedStep& step) const;

  const Loop& loop() const { return *loop_; }
  const std::shared_ptr<const Loop>& shared_loop() const { return loop_; }
  const Wanted& wanted() const { return wanted_; }
  /// Places of the state's floating tensors, whose adjoints are carried from step to step.
  const std::vector<std::size_t>& carried() const { return carried_; }
  const StateBlock& adjoints() const { return adjoints_; }
  /// The captured values asked for, and how their adjoints lie.
  const std::vector<std::size_t>& summed() const { return summed_; }
  const StateBlock& sums() const { return sums_; }
  /// By captured value asked for: the first step adds nothing to it.
  const std::vector<bool>& untouched() const { return untouched_; }
  /// The derivative of the first step.
  const StepPrograms& backward() const { return *backward_; }

 private:
  std::shared_ptr<const Loop> loop_;
  Wanted wanted_;
  Where where_;
  std::vector<std::size_t> carried_;
  std::vector<std::size_t> summed_;
  std::vector<bool> untouched_;
  StateBlock adjoints_;
  StateBlock sums_;
  std::optional<StepPrograms> backward_;
};

}  // namespace palimpsest
