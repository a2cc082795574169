#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "autodiff/var.h"
#include "checkpoint/chains/disk_costs.h"
#include "checkpoint/plan.h"
#include "checkpoint/stores/codec.h"
#include "checkpoint/stores/spill_file.h"

namespace palimpsest {

class StepRecorder;

/// The number of a step, as the body of a loop sees it: 0, 1, ….
class StepNumber {
 public:
  explicit StepNumber(StepRecorder& recorder) : recorder_(&recorder) {}

  /// The number itself. A body that asks for it is recorded again for every step.
  operator std::int64_t() const;  // NOLINT(google-explicit-constructor): it is a number
  /// The number as a scalar Var of `dtype`, with which the body need not be recorded again.
  Var as(DType dtype) const;

 private:
  StepRecorder* recorder_;
};

/// What one step of a loop makes: the state that the next step reads, each of the type of the state
/// it was given in that place, and whatever is to be kept of the step.
struct LoopStep {
  std::vector<Var> state;
  std::vector<Var> outputs = {};
};

/// Records one step of a loop: from the state, and the step's part of what the loop was given per
/// step. Called once and run again while nothing it does depends on the number of the step or on
/// values, else called for every step that is run, also for one that is run again: it must record
/// the same for the same step and state, and loops of one tape that run at the same time call
/// theirs at the same time, as do two derivatives of one loop. Values of the tape that it uses
/// without being given them are captured, and get their gradients.
using LoopBody = std::function<LoopStep(std::span<const Var> state, std::span<const Var> inputs,
                                        const StepNumber& step)>;

/// How a loop is run.
struct LoopOptions {
  /// Most bytes that the states held for the backward part and the memory of one step may take
  /// together; without one, as many as the budget of the run leaves.
  Bytes memory_budget = unlimited;
  /// Most bytes that a step takes beside its state, where steps are recorded one by one; more than
  /// twice what the first one takes if it is larger than that.
  Bytes step_memory = 0;
  /// Most steps of a loop whose length is not known.
  std::uint32_t max_steps = 1'000'000'000;
  /// Values of the tape that some steps use, but not the first.
  std::vector<Var> captured = {};
  /// Directory for states that are to be held and for which there is no room in memory. They are
  /// kept in a file that is removed when the run ends or fails, that of a killed process by the
  /// next run; as many as make the derivative cheapest by `disk_costs`. None without a directory.
  std::string spill = {};
  SpillOptions spill_options = {};
  /// What writing a state to that directory and reading it takes; without, it is measured where a
  /// disk may serve, in half a second, once for each size of state and order of their number.
  std::optional<DiskCosts> disk_costs = {};
  /// How states are kept, in memory and on disk. Other than exact, steps are run again from states
  /// each of which has lost the digits that `Codec` says: gradients are those of a trajectory
  /// nearby, and depend on which states are held, and so on budgets.
  Codec codec = Codec::exact;
  /// Compares each state that is computed again in a run with what it was, by a hash, and throws
  /// `ArgumentError` naming the step where it differs: its body depends on more than it is given.
  /// What a step records to be differentiated is not compared. Takes 8 bytes a step outside every
  /// budget. Not together with a codec that loses digits.
  bool check = false;
};

/// The state behind the last step, and of each output of the body those of all steps, one behind
/// the other along a first axis of their own.
struct LoopResult {
  std::vector<Var> state;
  std::vector<Var> outputs;
};

/// Runs `body` for steps 0, 1, … `steps` − 1, each on the state that the one before made, the first
/// on `state`. Each of `inputs` has a first axis of `steps` elements; step n is given element n of
/// it. One node of the tape, however many steps there are; its derivative holds some of the states
/// and runs the steps in between again, as few as its memory allows (Griewank and Walther, 2000).
///
/// Throws `ArgumentError` for a negative number of steps, for options that exclude each other and
/// when the body records a parameter, `ShapeError` and `DTypeError` when it makes a state of
/// another type, or an input has another first axis, `FileError` when there is no such directory. A
/// run throws `EnvironmentError` or `FileError` when the disk is full or a file has been changed.
LoopResult scan(std::span<const Var> state, std::int64_t steps, std::span<const Var> inputs,
                const LoopBody& body, const LoopOptions& options = {},
                Where where = Where::current());

/// The same for a body that takes the state and the number of the step and returns the new state.
template <class F>
  requires std::is_invocable_r_v<std::vector<Var>, F&, std::span<const Var>, const StepNumber&>
std::vector<Var> scan(std::span<const Var> state, std::int64_t steps, F body,
                      const LoopOptions& options = {}, Where where = Where::current()) {
  const auto step = [body = std::move(body)](std::span<const Var> xs, std::span<const Var>,
                                             const StepNumber& n) mutable {
    return LoopStep{body(xs, n)};
  };
  return scan(state, steps, {}, LoopBody(step), options, where).state;
}

/// The same for a state of one Var.
template <class F>
  requires std::is_invocable_r_v<Var, F&, const Var&, const StepNumber&>
Var scan(const Var& state, std::int64_t steps, F body, const LoopOptions& options = {},
         Where where = Where::current()) {
  const auto step = [body = std::move(body)](std::span<const Var> xs, std::span<const Var>,
                                             const StepNumber& n) mutable {
    return LoopStep{{body(xs[0], n)}};
  };
  return scan({&state, 1}, steps, {}, LoopBody(step), options, where).state[0];
}

}  // namespace palimpsest
