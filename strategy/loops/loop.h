#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "strategy/loops/held_components.h"
#include "strategy/loops/loop_memory.h"
#include "strategy/loops/loop_resume.h"
#include "strategy/run/runner_pool.h"

namespace palimpsest {

struct KeptValues;

/// Throws `ArgumentError`, `ShapeError` or `DTypeError` when a step's next state has another type
/// than its state, or when it records a parameter.
void require_state(const RecordedStep& step, const StepBody& body);

/// A recorded loop, except its node. Immutable, apart from what it keeps for later runs.
class Loop {
 public:
  /// `steps` is ignored where there is a condition.
  Loop(StepBody body, RecordedStep step, std::optional<RecordedStep> condition,
       std::vector<Var> captured, std::uint32_t steps, const LoopOptions& options,
       const LoopPlace& place);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// True when the number of steps is not known.
  bool has_condition() const { return condition_.has_value(); }
  /// The number of steps; 0 where that is not known.
  std::uint32_t steps() const { return steps_; }
  const LoopOptions& options() const { return options_; }
  /// The first step. In most loops it stands for all. It has no values except those of its
  /// constants.
  const RecordedStep& step() const { return step_; }
  const Tape& tape() const { return *step_.tape; }
  /// True when every step is recorded separately, by `body`.
  bool is_recorded_again() const {
    return step_.may_differ() || (condition_ && condition_->may_differ());
  }
  const StepBody& body() const { return body_; }
  /// Values of the outer tape that steps use.
  const std::vector<Var>& captured() const { return captured_; }
  const StateBlock& state() const { return state_; }
  /// False if states are rounded while they are held.
  bool is_exact() const { return options_.codec == Codec::exact; }
  /// The costs of the disk that the user gave or an earlier process measured, if any.
  std::optional<DiskCosts> given_costs() const;
  /// Null for a loop without journals.
  const LoopResume* resume() const { return resume_.get(); }
  /// Programs from state, inputs, captured values and step number to the next state and the
  /// outputs.
  const StepPrograms& forward() const { return forward_; }
  /// The held components of its state: all, those with a key, or at least these (see
  /// `HeldComponents::key`). The objects live as long as the loop.
  const HeldComponents& held() const { return held(0); }
  const HeldComponents& held(std::uint64_t key) const;
  const HeldComponents& held(const std::vector<bool>& components) const {
    return held(HeldComponents::key_of(components));
  }
  /// Whether the loop continues from a state; only where there is a condition.
  const RecordedStep& condition() const { return *condition_; }
  const StepPrograms& goes_on() const { return *goes_on_; }
  /// The assumed number of steps where that is not known.
  std::uint32_t likely_steps() const { return has_condition() ? 1000 : steps_; }
  /// States to hold for the backward part, in addition to the first, when no budget limits them.
  std::uint32_t snapshots() const { return std::max(likely_steps(), 1u) - 1; }
  /// Types of values of the step's tape.
  std::vector<ValueType> types(std::span<const ValueId> values) const;
  /// The same object for equal lists of values. It lives as long as the loop.
  const KeptValues& keep(const std::vector<ValueId>& values) const;
  /// The kept values with this key, for which `keep` was called.
  const KeptValues& kept(std::uint64_t key) const;

  /// The runners of its steps that no run uses. Any thread may take them.
  RunnerPool& runners() const { return runners_; }

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
  StepPrograms forward_;
  std::optional<StepPrograms> goes_on_;
  std::unique_ptr<const LoopResume> resume_;
  mutable std::mutex mutex_;
  mutable std::map<std::uint64_t, std::unique_ptr<const HeldComponents>> held_;
  mutable std::map<std::uint64_t, std::unique_ptr<const KeptValues>> kept_;
  mutable RunnerPool runners_;
};

/// The derivative of a step, recorded after it on its tape: from the adjoints of its results to
/// those of its inputs.
struct StepGradient {
  BufferInterface program;
  std::vector<bool> untouched;  ///< by requested captured value: the step leaves its adjoint
                                ///< unchanged
};

/// The derivative of a loop.
class LoopGradient {
 public:
  /// Which adjoints are given, and which are requested, by index among the loop's values. Values
  /// that are not floating have neither.
  struct Requested {
    std::vector<bool> next;          ///< which adjoints of the last state are given
    std::vector<bool> outputs;       ///< which adjoints of outputs are given
    std::vector<bool> state;         ///< which adjoints of the first state are returned
    std::vector<bool> inputs;        ///< which adjoints of inputs are returned
    std::vector<bool> captured;      ///< which adjoints of captured values are returned
    std::vector<bool> carried = {};  ///< which adjoints of a state go from step to step
  };
  /// `requested` is a result of `with_carried`.
  LoopGradient(std::shared_ptr<const Loop> loop, Requested requested, const Where& where);
  ~LoopGradient();
  LoopGradient(const LoopGradient&) = delete;
  LoopGradient& operator=(const LoopGradient&) = delete;

  /// Records the derivative of a step of the loop. The program's arguments are the step's inputs,
  /// the adjoints of the next state (all that are carried), the given adjoints of outputs, and the
  /// sums so far. Its results are the adjoints of the state, the requested adjoints of inputs, and
  /// the new sums.
  StepGradient differentiate(const RecordedStep& step) const;

  const Loop& loop() const { return *loop_; }
  const std::shared_ptr<const Loop>& shared_loop() const { return loop_; }
  const Requested& requested() const { return requested_; }
  /// By component of the state: whether it is held. All are if steps are recorded one by one, or
  /// if there is a journal.
  const std::vector<bool>& held() const { return held_; }
  /// Indices of the tensors whose adjoints are carried from step to step.
  const std::vector<std::size_t>& carried() const { return carried_; }
  const StateBlock& adjoints() const { return adjoints_; }
  /// The requested captured values, and the layout of their adjoints.
  const std::vector<std::size_t>& summed() const { return summed_; }
  const StateBlock& sums() const { return sums_; }
  /// By requested captured value: the first step adds nothing to its adjoint.
  const std::vector<bool>& untouched() const { return untouched_; }
  /// Identifies it among the derivatives of a loop with journals.
  std::uint32_t number() const { return number_; }
  /// The derivative of the first step.
  const StepPrograms& backward() const { return *backward_; }
  /// Likewise, from the next state and kept values, which follow the step's inputs.
  const StepPrograms& backward(const KeptValues& kept) const;
  /// The values of a step to keep for it (see `values_to_keep`).
  const std::vector<ValueId>& values_to_keep() const { return values_to_keep_; }

 private:
  std::shared_ptr<const Loop> loop_;
  Requested requested_;
  Where where_;
  std::vector<std::size_t> carried_;
  std::vector<std::size_t> summed_;
  std::vector<bool> untouched_;
  StateBlock adjoints_;
  StateBlock sums_;
  std::uint32_t number_ = 0;
  std::optional<StepPrograms> backward_;
  std::vector<bool> held_;
  std::vector<ValueId> values_to_keep_;
  mutable std::mutex mutex_;
  mutable std::map<std::uint64_t, StepPrograms> from_kept_;
};

}  // namespace palimpsest
