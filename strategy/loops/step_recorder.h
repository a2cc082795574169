#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "strategy/loops/scan.h"

namespace palimpsest {

/// One step of a loop, recorded on a tape of its own. The step's arguments are leaves without a
/// buffer.
struct RecordedStep {
  std::shared_ptr<Tape> tape = std::make_shared<Tape>();
  std::vector<ValueId> state;
  std::vector<ValueId> inputs;
  std::vector<ValueId> captured;
  ValueId number = none;      ///< of the step, i64
  std::vector<ValueId> next;  ///< the state that it makes
  std::vector<ValueId> outputs;
  bool follows_number = false;  ///< the recording may depend on the step number
  bool follows_values = false;  ///< the recording may depend on values

  /// The arguments: state, inputs, captured values and the step number.
  std::vector<ValueId> arguments() const;
  /// The rewritten step, which is run in its place.
  RecordedStep rewritten(const InnerRewrite& rewrite) const;
  /// True when another step may be recorded differently.
  bool may_differ() const { return follows_number || follows_values; }
};

/// The functions with which a loop records its steps, and their context.
struct StepBody {
  LoopBody body;
  LoopBody condition;  ///< if the length is not known; its only output tells whether to continue
  Tape* outer;         ///< the tape that the loop is recorded on
  std::uint64_t seed;  ///< of the random streams
  Where where;         ///< where the user recorded the loop
  /// Other tapes whose values the body refers to, and what is captured in place of these. A value
  /// may be replaced several times, in the order of this list.
  std::vector<Tape*> origins = {};
  std::vector<std::pair<Var, Var>> aliases = {};
  InnerRewrite rewrite = nullptr;  ///< applied to every step
  std::uint32_t generation = 0;    ///< of `outer`, added to the rounds of the random streams

  /// Distance of the random streams of two runs.
  std::uint32_t spread(std::uint32_t steps) const {
    return condition != nullptr ? 0x9e3779b1u : steps;
  }
  /// The function that the user called.
  const char* name() const { return condition != nullptr ? "while_loop" : "scan"; }
};

/// The functions of a loop that is now recorded on `tape`. Run k draws the random numbers of a tape
/// that was cleared k times, so the seed does not depend on the generation.
StepBody step_body(Tape& tape, LoopBody body, LoopBody condition, const Where& where);

/// Calls the body of a loop to record a step.
class StepRecorder {
 public:
  /// Computes a value from what has been recorded so far, for a body that looks at it.
  using Look = std::function<void(const RecordedStep& step, ValueId value, std::byte* to)>;

  /// `captured` are values of the outer tape for which every step has a leaf. `round` is that in
  /// which the step draws random numbers.
  StepRecorder(const StepBody& body, std::vector<Var> captured, Round round)
      : body_(body), captured_(std::move(captured)), round_(round) {}

  /// Whether a step of a loop is being recorded on this tape.
  static bool records(const Tape& tape);
  /// The round of that step, or 0: what nodes on the tape compute now is computed in this round.
  static Round round_on(const Tape& tape);

  /// The given captured values, followed by others that steps used.
  std::span<const Var> captured() const { return captured_; }
  /// A value that a step used and that is not of the tape of the loop, but of one around it. Empty
  /// if there was none.
  const Var& value_from_further() const { return from_further_; }

  /// Records `f`, which is the body or the condition.
  RecordedStep record(const LoopBody& f, std::span<const ValueType> state,
                      std::span<const ValueType> inputs, std::int64_t step, const Look& look);

 private:
  friend class StepNumber;
  class Looking;
  struct LateCapture {
    const StepRecorder* recorder;
  };

  RecordedStep record_once(const LoopBody& f, std::span<const ValueType> state,
                           std::span<const ValueType> inputs, const Look& look);
  ValueId leaf(const ValueType& type);
  Var stand_in(Var value);
  /// The captured value that a leaf of the step stands for, or an empty handle.
  Var original_of(ValueId leaf) const;

  const StepBody& body_;
  std::vector<Var> captured_;
  Round round_;
  RecordedStep made_;
  Var from_further_;
  std::int64_t step_ = 0;
  bool is_late_ = false;  ///< a value was captured in a region, so the recording is incomplete
};

}  // namespace palimpsest
