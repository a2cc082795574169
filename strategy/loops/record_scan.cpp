#include "strategy/loops/record_scan.h"

#include <oneapi/tbb/task_arena.h>

#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <system_error>

#include "autodiff/recording_guards.h"
#include "checkpoint/reverse/journal_directory.h"
#include "checkpoint/stores/codec_option.h"
#include "strategy/loops/loop_budgets.h"
#include "strategy/loops/loop_operation.h"
#include "strategy/run/buffer_runner.h"

namespace palimpsest {
namespace {

std::uint32_t checked_steps(std::int64_t steps, const Where& where) {
  constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max() - 1;
  if (steps >= 0 && steps <= most) return static_cast<std::uint32_t>(steps);
  throw ArgumentError("scan",
                      "cannot run " + std::to_string(steps) + " steps; give a number from 0 to " +
                          std::to_string(most),
                      where);
}

/// Options of a journal.
void require_valid_journal(const LoopOptions& options, const StepBody& body) {
  const auto refuse = [&](const char* problem) {
    throw ArgumentError(body.name(), problem, body.where);
  };
  if (options.record_every.count() < 0) refuse("record_every is negative; give a time");
  if (options.resume.empty()) {
    if (!options.tag.empty()) {
      refuse("a tag belongs to a journal; set LoopOptions::resume, or leave out the tag");
    }
    if (options.record_every != LoopOptions().record_every) {
      refuse("record_every belongs to a journal; set LoopOptions::resume, or leave it out");
    }
    return;
  }
  if (options.spill.empty()) return;
  if (normal_path(options.spill) != normal_path(options.resume)) {
    refuse(
        "spill and resume name different directories; name the same one, because a loop that "
        "continues needs its states on disk");
  }
  if (options.spill_options.compress) {
    refuse(
        "states on disk are in the journal, which does not compress; leave out "
        "SpillOptions::compress or LoopOptions::resume");
  }
}

/// Whether a run records the steps one by one.
bool records_again(const RecordedStep& step, const std::optional<RecordedStep>& condition) {
  return step.may_differ() || (condition && condition->may_differ());
}

/// Whether the journal of a loop on this tape could be found again.
void require_resumable(const Tape& tape, const RecordedStep& step,
                       const std::optional<RecordedStep>& condition, const LoopOptions& options,
                       const StepBody& body) {
  if (options.resume.empty()) return;
  const auto refuse = [&](const char* problem) {
    throw ArgumentError(body.name(), problem, body.where);
  };
  if (StepRecorder::records(tape)) {
    refuse(
        "a loop in a step of another loop runs many times, so that it cannot have a journal; set "
        "LoopOptions::resume of the outer loop instead");
  }
  if (tape.is_temporary()) {
    refuse(
        "a loop in a checkpoint runs again where its values are needed, so that it cannot have a "
        "journal; move it out of the checkpoint, or leave out LoopOptions::resume");
  }
  if (records_again(step, condition) && options.tag.empty()) {
    refuse(
        "the steps are recorded one by one, so that a journal does not know their structure; name "
        "the program and its version in LoopOptions::tag");
  }
}

void require_valid(const LoopOptions& options, const StepBody& body) {
  require_valid_journal(options, body);
  require_codec(options.codec, "[" + std::string(body.name()) + "] LoopOptions::codec");
  if (options.check && options.codec != Codec::exact) {
    throw ArgumentError(body.name(),
                        "check compares states, but codec stores them with fewer digits; leave out "
                        "LoopOptions::check or LoopOptions::codec",
                        body.where);
  }
  std::error_code ignored;
  if (options.spill.empty() || !options.resume.empty() ||
      std::filesystem::is_directory(options.spill, ignored))
    return;
  throw FileError("[" + std::string(body.name()) + "] " + options.spill +
                  " is not a directory to keep states in (recorded at " + to_string(body.where) +
                  "); create it, or name another one in LoopOptions::spill");
}

/// The type of one step's element of an input.
ValueType part_of(const Var& input, std::size_t index, std::int64_t steps, const Where& where) {
  const ValueType whole = input.type();
  if (whole.shape.rank() == 0 || whole.shape[0] != steps) {
    throw ShapeError("scan",
                     "input " + std::to_string(index) + " is " + to_string(whole) + " for " +
                         std::to_string(steps) +
                         " steps; its first axis must have one element per step",
                     where);
  }
  Shape part;
  for (int axis = 1; axis < whole.shape.rank(); ++axis) part.push_back(whole.shape[axis]);
  return {part, whole.dtype};
}

/// The operands that a program reads, all of them present at once.
struct ReadOperands {
  ReadOperands(Tape& tape, const BufferProgram& program, std::span<const Var> operands)
      : values(operands.size()) {
    std::vector<ValueId> made;
    bool is_missing = false;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (!program.reads(i) || tape.is_leaf(operands[i].node())) continue;
      made.push_back(operands[i].id());
      bytes += operands[i].type().bytes();
      is_missing = is_missing || !tape.has_value(operands[i].id());
    }
    if (is_missing && tape.evaluator() != nullptr) {
      const InUse::Use use(tape.in_use(), tape_use::computing, "scan");
      tape.evaluator()->compute(tape, made);
    }
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (program.reads(i)) values[i] = tape.value(operands[i].id());
    }
  }

  std::vector<Tensor> values;  // by operand
  Bytes bytes = 0;             // without leaves
};

/// Computes a value of a step from the loop's initial operands.
void look(Tape& tape, const RecordedStep& step, ValueId value, std::span<const Var> operands,
          Round round, std::byte* to) {
  LoopBudgets loops(LoopBudgets::Keeps::states);
  const BufferInterface interface{step.arguments(), {value}, step.tape->node_count()};
  BufferProgramPtr program;
  const auto plan = [&](Bytes budget) {
    const RunOptions options{.memory_budget = budget, .threads = 1};
    program = compile_for_buffers(step.tape, interface, options, loops).take();
    return program->workspace();
  };
  const Bytes whole = plan(unlimited);
  const auto plan_less = [&](Bytes budget) { return budget < whole ? plan(budget) : whole; };
  const ReadOperands read(tape, *program, operands);
  Buffer memory;
  if (tape.evaluator() != nullptr)
    memory = tape.evaluator()->room_beside(tape, read.bytes, plan_less);
  if (memory == nullptr) memory = allocate_buffer(program->workspace());
  Addresses addresses;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    addresses.push_back(program->reads(i) ? read.values[i].raw() : nullptr);
  }
  std::int64_t number = 0;
  addresses.push_back(reinterpret_cast<std::byte*>(&number));
  BufferRunner runner(program, {memory.get(), static_cast<std::size_t>(program->workspace())});
  tbb::task_arena(1).execute([&] { runner.run(addresses, {&to, 1}, round); });  // as it was planned
}

void require_condition(const RecordedStep& condition, const Where& where) {
  const ValueType type = condition.tape->type(condition.outputs[0]);
  const std::string text = "the condition is " + to_string(type) +
                           "; return one element of bool, such as a comparison of scalars";
  if (type.dtype != DType::boolean) throw DTypeError("while_loop", text, where);
  if (type.shape.elements() != 1) throw ShapeError("while_loop", text, where);
}

/// Captured values must outlive the recording if steps are recorded again. The derivatives of a
/// loop that are recorded for one run do: the run ends before they are removed.
void require_lasting(const Tape& tape, const RecordedStep& step,
                     const std::optional<RecordedStep>& condition, std::span<const Var> captured,
                     const StepBody& body, bool is_derived) {
  if (!records_again(step, condition) || captured.empty() || !tape.is_temporary()) return;
  if (is_derived && !ExtractedNodes::are_on(tape)) return;
  throw ArgumentError(body.name(),
                      "a loop in a checkpoint, or second derivatives of a loop in stages or on "
                      "devices, record its steps one by one and use values from outside; make "
                      "these part of its state",
                      body.where);
}

/// A run records the steps of a nested loop when the enclosing loop is recorded no more. Then only
/// values of the enclosing step have a counterpart, and `from_further` has none.
void require_enclosed(const RecordedStep& step, const std::optional<RecordedStep>& condition,
                      const Var& from_further, const StepBody& body) {
  if (!records_again(step, condition) || !from_further.defined()) return;
  throw ArgumentError(body.name(),
                      "a loop in a step of another loop records its steps one by one and uses " +
                          from_further.tape().describe(from_further.node()) +
                          ", which the enclosing loop did not record; make it part of the state "
                          "of the inner loop",
                      body.where);
}

}  // namespace

LoopResult record_scan(Tape& tape, std::span<const Var> state, std::int64_t steps,
                       std::span<const Var> inputs, StepBody body, const LoopOptions& options,
                       bool is_derived) {
  const Where where = body.where;
  const std::uint32_t count = checked_steps(steps, where);
  require_valid(options, body);
  std::vector<Var> operands;
  std::vector<ValueType> states;
  std::vector<ValueType> parts;
  for (const Var& value : state) {
    operands.push_back(tape.here(value, body.name(), where));
    states.push_back(value.type());
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    operands.push_back(tape.here(inputs[i], body.name(), where));
    parts.push_back(part_of(inputs[i], i, steps, where));
  }

  std::vector<Var> named;
  for (const Var& value : options.captured) named.push_back(tape.here(value, body.name(), where));
  // As `LoopArguments` counts it for step 0, also in a step of another loop.
  const Round outer = StepRecorder::round_on(tape);
  const Round round((body.generation + outer.run) * body.spread(count), outer.part);
  StepRecorder recorder(body, std::move(named), round);
  const auto look_first = [&](const RecordedStep& step, ValueId value, std::byte* to) {
    std::vector<Var> given = operands;
    for (const Var& each : recorder.captured()) {
      given.push_back(tape.here(each, body.name(), where));
    }
    look(tape, step, value, given, round, to);
  };
  RecordedStep step = recorder.record(body.body, states, parts, 0, look_first);
  require_state(step, body);
  std::optional<RecordedStep> condition;
  if (body.condition != nullptr) {
    const std::size_t known = recorder.captured().size();
    condition = recorder.record(body.condition, states, {}, 0, look_first);
    require_condition(*condition, where);
    const bool knows_all = recorder.captured().size() == known;
    if (!knows_all) step = recorder.record(body.body, states, parts, 0, look_first);
  }
  const std::vector<Var> captured(recorder.captured().begin(), recorder.captured().end());
  for (const Var& value : captured) operands.push_back(tape.here(value, body.name(), where));
  require_lasting(tape, step, condition, captured, body, is_derived);
  if (!is_derived) {
    if (count > 0 || condition) {
      require_enclosed(step, condition, recorder.value_from_further(), body);
    }
    require_resumable(tape, step, condition, options, body);
  }
  const auto loop =
      std::make_shared<const Loop>(std::move(body), std::move(step), std::move(condition), captured,
                                   count, options, LoopPlace{tape.node_count(), tape.part()});
  std::vector<Var> made = record_loop(tape, loop, operands, where);
  LoopResult result;
  result.state.assign(made.begin(), made.begin() + std::ssize(state));
  result.outputs.assign(made.begin() + std::ssize(state), made.end());
  return result;
}

}  // namespace palimpsest
