#pragma once

#include <chrono>
#include <concepts>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "autodiff/export.h"
#include "autodiff/require_function.h"
#include "autodiff/var.h"
#include "checkpoint/chains/disk_costs.h"
#include "checkpoint/plan.h"
#include "checkpoint/stores/codec.h"
#include "checkpoint/stores/spill_file.h"

namespace palimpsest PALIMPSEST_EXPORT {

class StepRecorder;

/// The number of the current step, from 0, in the body of a loop.
class StepNumber {
 public:
  explicit StepNumber(StepRecorder& recorder) : recorder_(&recorder) {}

  /// The number as an integer. A body that uses it is recorded again for every step.
  operator std::int64_t() const;  // NOLINT(google-explicit-constructor): it is a number
  /// The number as a scalar `Var` of `dtype`. Using it does not make the body be recorded again.
  Var as(DType dtype) const;

 private:
  StepRecorder* recorder_;
};

/// The result of a step: the next state, whose elements have the types of the current state, and
/// the outputs to keep.
struct LoopStep {
  std::vector<Var> state;
  std::vector<Var> outputs = {};
};

/// Records one step of a loop, from the state and the step's elements of the loop's inputs.
///
/// Called once, and run again for every step, unless its recording depends on the step number or on
/// values. Otherwise it is called for every step that is run, including repeated ones. Then it must
/// record the same for the same step and state. Loops of one tape that run at the same time call
/// their bodies at the same time, as do two derivatives of one loop.
///
/// The body may use other values of the outer tape. These are captured, and get their gradients.
/// Derivatives in the body see the state, the inputs and the captured values as independent. They
/// throw `ArgumentError` where one captured value depends on another and they would need that path.
using LoopBody = std::function<LoopStep(std::span<const Var> state, std::span<const Var> inputs,
                                        const StepNumber& step)>;

/// Options of a loop.
struct LoopOptions {
  /// Most bytes for the states held for the backward part, the values that steps keep for it, and
  /// the memory of one step, together. Without a limit the loop takes what the budget of the run
  /// leaves.
  Bytes memory_budget = unlimited;
  /// Where steps are recorded one by one: most bytes that a step may take in addition to its state.
  /// The limit is at least a little more than twice what the first step takes.
  Bytes step_memory = 0;
  /// Most steps of a `while_loop`.
  std::uint32_t max_steps = 1'000'000'000;
  /// Values of the tape that some steps use, but not the first one.
  std::vector<Var> captured = {};
  /// Directory for states that do not fit in memory; empty for none. The states are kept in a file
  /// that is removed when the run ends or fails. The next run removes the file of a killed process.
  /// The number of states on disk is the one that makes the derivative cheapest according to
  /// `disk_costs`.
  std::string spill = {};
  /// How that file is written and read.
  SpillOptions spill_options = {};
  /// The cost of writing a state to that directory and of reading it. Without it, the cost is
  /// measured where a disk may help. That takes half a second, once for each size of state and
  /// order of magnitude of their number.
  std::optional<DiskCosts> disk_costs = {};
  /// How states are stored, in memory and on disk. Unless it is exact, steps run again from states
  /// that have lost the digits that `Codec` says. The gradients are then those of a nearby
  /// trajectory. They depend on which states are held, and so on budgets. A run throws
  /// `ArgumentError` for a finite number that the narrow dtype cannot hold.
  Codec codec = Codec::exact;
  /// A directory for a journal. If the process is killed, the next run of the same program
  /// continues the loop from there, forward or backward, with the same bits. Empty: none. With
  /// `spill` it must be the same directory. Not for a loop in a `checkpoint` or in another loop.
  ///
  /// A journal of another run that has not ended is rejected. Runs are compared by their tags,
  /// budgets and options, by the operations of a step with their attributes, by its random streams,
  /// and by everything that the loop reads. They are also compared by the results of the first
  /// step, which runs once more for that. These results must show a change of a user's function in
  /// the body. Change the tag where they may not.
  ///
  /// Loops on tapes with other numbers (`Tape::set_part`) have their journals in subdirectories.
  /// The parts of a batch in an `Execution` and the stages of a `LayerCheckpointer` have such
  /// numbers.
  ///
  /// A run that is stopped throws `EnvironmentError` in place of `StoppedError` if the disk is too
  /// full for the record.
  std::string resume = {};
  /// Names the program and its version. Required with `resume` where steps are recorded one by one,
  /// because their structure is not known.
  std::string tag = {};
  /// Time between two records of the journal. A longer time is taken where records cost more than a
  /// hundredth of it. Zero makes a record after each step. Only with `resume`. A backward part that
  /// continues runs the forward part again if that took less than this time.
  std::chrono::duration<double> record_every = std::chrono::seconds(30);
  /// Compares what is held of each recomputed state with the original by a hash. Throws
  /// `ArgumentError` naming the step where they differ: then the body depends on more than its
  /// arguments. Recordings for differentiation are not compared. Takes 8 bytes per step, outside of
  /// every budget. A backward part with a journal of its own takes as many again. Not allowed with
  /// a codec that rounds.
  bool check = false;
};

/// The state after the last step, and each output of the body for all steps, stacked along a new
/// first axis.
struct LoopResult {
  std::vector<Var> state;
  std::vector<Var> outputs;
};

/// Runs `body` for steps 0, 1, … `steps` − 1, similar to JAX's `lax.scan`. The first step reads
/// `state`, each later one the state that the previous step made. Each of `inputs` has a first axis
/// of `steps` elements; step n gets element n.
///
/// The loop is one node of the tape, whatever the number of steps. Its derivative holds some of the
/// states and runs the steps in between again, as few as its memory allows (Griewank and Walther,
/// 2000). If all states are held, steps may also keep the values that their derivatives read. Then
/// they are not run again.
///
/// Throws `ArgumentError` for a negative number of steps, for options that exclude each other, and
/// when the body records a parameter. Throws `ShapeError` and `DTypeError` when the body makes a
/// state of another type, or an input has another first axis. Throws `FileError` when there is no
/// such directory. Throws `EnvironmentError` when another process uses the directory of the
/// journal. A run throws `EnvironmentError` or `FileError` when the disk is full or a file has been
/// changed, and `ArgumentError` for a journal of another run.
LoopResult scan(std::span<const Var> state, std::int64_t steps, std::span<const Var> inputs,
                const LoopBody& body, const LoopOptions& options = {},
                Where where = Where::current());

/// Likewise, as in `scan({start}, 100, {forces}, body)`.
inline LoopResult scan(std::initializer_list<Var> state, std::int64_t steps,
                       std::initializer_list<Var> inputs, const LoopBody& body,
                       const LoopOptions& options = {}, Where where = Where::current()) {
  return scan(std::span(state.begin(), state.size()), steps,
              std::span(inputs.begin(), inputs.size()), body, options, where);
}

/// Likewise, for a body that takes the state and the step number and returns the new state.
template <class F>
  requires std::is_invocable_r_v<std::vector<Var>, F&, std::span<const Var>, const StepNumber&>
std::vector<Var> scan(std::span<const Var> state, std::int64_t steps, F body,
                      const LoopOptions& options = {}, Where where = Where::current()) {
  detail::require_function(body, "scan", "the body", "records a step", where);
  const auto step = [body = std::move(body)](std::span<const Var> xs, std::span<const Var>,
                                             const StepNumber& n) mutable {
    return LoopStep{body(xs, n)};
  };
  return scan(state, steps, {}, LoopBody(step), options, where).state;
}

/// Likewise, as in `scan({position, velocity}, 100, body)`.
template <class F>
  requires std::is_invocable_r_v<std::vector<Var>, F&, std::span<const Var>, const StepNumber&>
std::vector<Var> scan(std::initializer_list<Var> state, std::int64_t steps, F body,
                      const LoopOptions& options = {}, Where where = Where::current()) {
  return scan(std::span(state.begin(), state.size()), steps, std::move(body), options, where);
}

/// Likewise, for a state of one `Var`.
template <class F>
  requires std::is_invocable_r_v<Var, F&, const Var&, const StepNumber&>
Var scan(const Var& state, std::int64_t steps, F body, const LoopOptions& options = {},
         Where where = Where::current()) {
  detail::require_function(body, "scan", "the body", "records a step", where);
  const auto step = [body = std::move(body)](std::span<const Var> xs, std::span<const Var>,
                                             const StepNumber& n) mutable {
    return LoopStep{{body(xs[0], n)}};
  };
  return scan({&state, 1}, steps, {}, LoopBody(step), options, where).state[0];
}

}  // namespace palimpsest
