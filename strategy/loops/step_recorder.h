#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "strategy/loops/scan.h"

namespace palimpsest {

/// One step of a loop, recorded on a tape of its own, where what the step is given are leaves
/// without a buffer.
struct RecordedStep {
  std::shared_ptr<Tape> tape = std::make_shared<Tape>();
  std::vector<ValueId> state;
  std::vector<ValueId> inputs;
  std::vector<ValueId> captured;
  ValueId number = none;      ///< of the step, i64
  std::vector<ValueId> next;  ///< the state that it makes
  std::vector<ValueId> outputs;
  bool follows_number = false;  ///< what was recorded may depend on the number of the step
  bool follows_values = false;  ///< or on values

  /// What it is given: state, inputs, captured values and the number.
  std::vector<ValueId> arguments() const;
  /// The step that is run in its place.
  RecordedStep rewritten(const InnerRewrite& rewrite) const;
  /// True when another step may record something else.
  bool may_differ() const { return follows_number || follows_values; }
};

/// What a loop calls again and again to record its steps.
struct StepBody {
  LoopBody body;
  LoopBody
      condition;  ///< of a loop whose length is not known; its only output says whether it goes on
  Tape* outer;    ///< the tape that the loop is recorded on
  std::uint64_t seed;  ///< of the streams that random operations draw from
  Where where;         ///< the loop's line
  /// Where the body finds values, if on another tape, and what is captured in place of these.
  Tape* origin = nullptr;
  std::vector<std::pair<Var, Var>> aliases = {};
  InnerRewrite rewrite = nullptr;  ///< of every step

  /// What the user called.
  const char* name() const { return condition != nullptr ? "while_loop" : "scan"; }
};

/// Calls the body of a loop for one step.
class StepRecorder {
 public:
  /// Computes a value of what has been recorded so far, for a body that looks at it.
  using Look = std::function<void(const RecordedStep& step, ValueId value, std::byte* to)>;

  /// `captured` holds values of the outer tape for which every step has a leaf.
  StepRecorder(const StepBody& body, std::vector<Var> captured)
      : body_(body), captured_(std::move(captured)) {}

  /// Those given, then others that steps used.
  std::span<const Var> captured() const { return captured_; }

  /// What `f`, the body or the condition, records.
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

  const StepBody& body_;
  std::vector<Var> captured_;
  RecordedStep made_;
  std::int64_t step_ = 0;
};

}  // namespace palimpsest
