#include "strategy/backward.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "autodiff/enumerators.h"
#include "autodiff/gradient.h"
#include "autodiff/interpreter.h"
#include "autodiff/recording_guards.h"
#include "checkpoint/dot.h"
#include "checkpoint/planning_files.h"
#include "strategy/base/parameters.h"
#include "strategy/base/updates.h"
#include "strategy/compile/step_cache.h"
#include "strategy/differentiate.h"
#include "strategy/evaluators/computed_outputs.h"
#include "strategy/evaluators/engine.h"
#include "strategy/evaluators/evaluators.h"
#include "strategy/loops/step_recorder.h"
#include "strategy/run/present.h"
#include "strategy/run/tape_reading.h"

namespace palimpsest {

Gradients::Entry::Entry(const Var& leaf, Tensor of_leaf)
    : parameter(leaf), gradient(std::move(of_leaf)) {
  const Tape& tape = leaf.tape();
  value = Tensor(tape.buffer(leaf.id()), leaf.shape(), leaf.dtype());
  if (!tape.name(leaf.node()).empty()) name = scoped_name(tape, leaf.node());
}

Gradients::Entry::Entry(const Var& leaf, Tensor of_leaf, Tensor of_parameter,
                        std::string name_with_scopes)
    : parameter(leaf),
      gradient(std::move(of_leaf)),
      value(std::move(of_parameter)),
      name(std::move(name_with_scopes)) {}

Gradients::Gradients(Tensor loss, std::vector<Entry> entries, Report report,
                     std::vector<Tensor> outputs)
    : loss_(std::move(loss)),
      entries_(std::move(entries)),
      report_(std::move(report)),
      outputs_(std::move(outputs)) {}

void Gradients::keep_apart() const {
  std::vector<const std::byte*> others = leaves_;
  others.push_back(loss_.raw());
  for (const Tensor& output : outputs_) others.push_back(output.raw());
  for (const Entry& entry : entries_) others.push_back(entry.value.raw());
  const Var of_tape = entries_.empty() ? Var() : entries_.front().parameter;
  if (of_tape.defined() && of_tape.is_current()) {
    const Tape& tape = of_tape.tape();
    for (ValueId value = 0; value < tape.value_count(); ++value) {
      if (tape.has_value(value)) others.push_back(tape.buffer(value).get());
    }
  }
  std::ranges::sort(others);
  std::map<const std::byte*, Tensor> own;
  for (Entry& entry : entries_) {
    const std::byte* const shared = entry.gradient.raw();
    if (entry.gradient.bytes() == 0 || !std::ranges::binary_search(others, shared)) continue;
    Tensor& copy = own[shared];
    if (!copy.defined()) copy = entry.gradient.clone();
    entry.gradient = copy;
  }
}

const Tensor& Gradients::operator[](const Var& parameter) const& {
  const auto entry = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& candidate) {
    return candidate.parameter == parameter;
  });
  if (entry == entries_.end()) {
    throw ArgumentError(
        "[gradients] the Var was not a parameter of the tape when these gradients were computed; "
        "record it with tape.parameter() before the loss, or use gradient(y, x) for derivatives "
        "with respect to other values");
  }
  return entry->gradient;
}

const Tensor& Gradients::operator[](std::string_view name) const& {
  const auto has_name = [&](const Entry& entry) { return !name.empty() && entry.name == name; };
  const auto found = std::ranges::find_if(entries_, has_name);
  if (found != entries_.end() && std::none_of(found + 1, entries_.end(), has_name)) {
    return found->gradient;
  }
  if (found != entries_.end()) {
    throw ArgumentError("[gradients] several parameters are called '" + found->name +
                        "'; rename them, or ask by the Var of the parameter");
  }
  constexpr std::size_t most = 8;
  std::size_t named = 0;
  std::string names;
  for (const Entry& entry : entries_) {
    if (entry.name.empty() || ++named > most) continue;
    names += (named > 1 ? ", '" : "'") + entry.name + "'";
  }
  if (named > most) names += " and " + std::to_string(named - most) + " more";
  throw ArgumentError("[gradients] there is no parameter called '" + std::string(name) + "'; " +
                      (named == 0 ? "none has a name, so ask by its Var" : "use one of " + names));
}

namespace {

EngineEvaluator& evaluator_of(Tape& tape, const char* operation, const Where& where) {
  if (StepRecorder::records(tape.recording())) {
    throw ArgumentError(operation,
                        "the body or condition of a loop is being recorded, so it cannot start a "
                        "run of its tape; record derivatives there with gradient(), ask for "
                        "numbers with value(), or call " +
                            std::string(operation) + " before or after the loop",
                        where);
  }
  if (tape.is_program()) {
    throw TapeError(operation,
                    "a Program is being recorded, so it cannot start a run of its tape; return the "
                    "values from the recorded function, record derivatives with gradient(), and "
                    "run the program with a Runner",
                    where);
  }
  tape.notice_writes();
  if (tape.evaluator() == nullptr) tape.set_evaluator(lazy());
  auto* evaluator = dynamic_cast<EngineEvaluator*>(tape.evaluator().get());
  if (evaluator == nullptr) {
    throw ArgumentError(operation,
                        "the tape's evaluator has no engine; use lazy(), eager(), hybrid() or none",
                        where);
  }
  return *evaluator;
}

bool has_parameters(const Tape& tape) {
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (tape.is_parameter(node)) return true;
  }
  return false;
}

/// Throws `TapeError` unless the loss and the outputs are on one tape.
Tape& tape_of(const LossAndOutputs& values, const char* operation, const Where& where) {
  if (!values.loss.defined()) throw_foreign(values.loss, operation, where);
  Tape& tape = values.loss.tape();
  for (const Var& output : values.outputs) {
    if (!output.defined() || !output.belongs_to(tape)) throw_foreign(output, operation, where);
  }
  return tape;
}

/// The values, and as further outputs those of the tape's updates and the counts of the loss.
LossAndOutputs with_further_outputs(const LossAndOutputs& values, const RecordedCounts& counts) {
  LossAndOutputs all = values;
  append_updates(all);
  counts.append_to(all);
  return all;
}
LossAndOutputs with_further_outputs(const LossAndOutputs& values) {
  return with_further_outputs(values, RecordedCounts(values.loss));
}

/// The values of the loss and the outputs, and the gradients, which are recorded temporarily: the
/// tape removes them again. Functions of derivatives may also record on the tape in whose place it
/// is computed. That is removed too.
struct Recorded {
  TemporaryNodes temporary;
  std::optional<TemporaryNodes> temporary_there;
  NodeId backward_begins;
  std::vector<ValueId> values;
  std::vector<Var> parameters;
  std::vector<Var> gradients;
  std::vector<ValueId> targets;
  bool has_leaves_only = true;

  Recorded(const LossAndOutputs& given, Tape* recorded_tape, const Where& where)
      : temporary(given.loss.tape()),
        backward_begins(given.loss.tape().node_count()),
        values(computed_values(given)) {
    if (recorded_tape != nullptr) temporary_there.emplace(*recorded_tape);
    require_scalar(given.loss, where);
    parameters = parameters_of(given.loss.tape());
    gradients = vjp({&given.loss, 1}, parameters, {}, where);
    targets = values;
    for (const Var& gradient : gradients) targets.push_back(gradient.id());
  }

  Recorded(const LossAndOutputs& given, Tape* recorded_tape, const RunOptions& options,
           const Where& where)
      : Recorded(given, recorded_tape, where) {
    // If only values of an earlier call are present, they are dropped. This call then runs the
    // program planned for the earlier one.
    Tape& tape = given.loss.tape();
    std::vector<ValueId> present;
    append_present(tape, present);
    if (are_among(present, values)) {
      for (const ValueId value : present) tape.drop(value);
      present.clear();
    }
    has_leaves_only = present.empty();
    // Without a budget nothing forces present values out, and an eager user wants to inspect them.
    if (options.memory_budget == unlimited) {
      targets.insert(targets.end(), present.begin(), present.end());
    }
  }

  Differentiated differentiated() const {
    const auto first = targets.begin() + std::ssize(values);
    return {values, backward_begins, {first, first + std::ssize(gradients)}};
  }
};

/// The gradients, with the values that a run has made present.
Gradients with_values(const LossAndOutputs& values, std::vector<Gradients::Entry> entries,
                      Report report) {
  std::vector<Tensor> outputs;
  for (const Var& output : values.outputs) outputs.push_back(output.value());
  return Gradients(values.loss.value(), std::move(entries), std::move(report), std::move(outputs));
}

/// Values that a tape in place of theirs has computed again are no longer out of date.
void renew(std::span<const Var> values) {
  for (const Var& value : values) value.tape().outdated().erase(value.id());
}

/// Turns the gradients of a tape computed in place of the values' tape into gradients of that tape.
Gradients of_tape(const LossAndOutputs& values, const Gradients& computed,
                  const EngineEvaluator& evaluator) {
  const std::vector<Var> parameters = parameters_of(values.loss.tape());
  std::vector<Gradients::Entry> entries;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    entries.emplace_back(parameters[i], computed.entries()[i].gradient);
  }
  Report report = computed.report();
  report.precision = evaluator.precision();
  renew({&values.loss, 1});
  renew(values.outputs);
  return with_values(values, std::move(entries), std::move(report));
}

/// `recorded_tape`: the tape in whose place that of the values is computed, if there is one.
Gradients run_backward(const LossAndOutputs& values, const RunOptions& options, const Where& where,
                       Tape* recorded_tape = nullptr) {
  Tape& tape = values.loss.tape();
  const InUse::Use use(tape.in_use(), tape_use::asking, "backward", &where);
  EngineEvaluator& evaluator = evaluator_of(tape, "backward", where);
  const auto held = evaluator.hold_temporary(tape);
  const LossAndOutputs computed = computed_for(evaluator, values);
  if (!computed.loss.belongs_to(tape)) {
    return of_tape(values, run_backward(computed, options, where, &tape), evaluator);
  }
  Engine& engine = evaluator.engine();
  const RunOptions run = evaluator.prepare(tape, options);
  std::vector<Gradients::Entry> entries;
  if (const auto repeated = engine.repeat(tape, computed_values(values), run)) {
    const std::vector<Var> parameters = parameters_of(tape);
    entries.reserve(parameters.size());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      entries.emplace_back(parameters[i], repeated->gradients[i]);
    }
    return with_values(values, std::move(entries), repeated->report);
  }
  const Recorded recorded(values, recorded_tape, run, where);
  Report report = engine.evaluate(tape, recorded.targets, recorded.backward_begins, run);
  for (std::size_t i = 0; i < recorded.parameters.size(); ++i) {
    entries.emplace_back(recorded.parameters[i], recorded.gradients[i].value());
  }
  if (report.plan_reused && recorded.has_leaves_only) {
    engine.remember(tape, recorded.differentiated());
  }
  return with_values(values, std::move(entries), std::move(report));
}

}  // namespace

Gradients backward(const LossAndOutputs& values, const RunOptions& options, Where where) {
  Tape& tape = tape_of(values, "backward", where);
  evaluator_of(tape, "backward", where);
  if (!has_parameters(tape)) {
    // A value that leaked from the body of a loop has none either. That error says more.
    const ValueId loss = values.loss.id();
    require_leaves(tape, {&loss, 1});
    throw_without_parameters("backward", "evaluate()", where);
  }
  return differentiate(values, options, where);
}

Gradients differentiate(const LossAndOutputs& values, const RunOptions& options,
                        const Where& where) {
  Tape& tape = tape_of(values, "backward", where);
  const InUse::Use use(tape.in_use(), tape_use::asking, "backward", &where);
  const RecordedCounts counts(values.loss);
  if (tape.updates().empty() && counts.empty()) return run_backward(values, options, where);
  const std::vector<Tape::Update> updates(tape.updates().begin(), tape.updates().end());
  const Gradients made = [&] {
    const LossAndOutputs all = with_further_outputs(values, counts);
    // They are this run's, not those of a gradient that the function of a derivative asks for.
    tape.forget_updates();
    try {
      return run_backward(all, options, where);
    } catch (...) {
      for (const auto& [target, value, weight] : updates) {
        tape.update_after_run(target, tape.var(value), weight, where);
      }
      throw;
    }
  }();
  const auto all = made.outputs();
  const std::size_t requested = values.outputs.size();
  std::vector<Tensor> outputs(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(requested));
  keep_from_updates(updates, outputs);
  apply_updates(updates, all.subspan(requested, updates.size()));
  Gradients gradients(made.loss(), {made.begin(), made.end()}, made.report(), std::move(outputs));
  gradients.set_counts(counts.read(all.subspan(requested + updates.size())));
  return gradients;
}

Gradients backward(const Var& loss, const Outputs& outputs, const RunOptions& options,
                   Where where) {
  return backward(LossAndOutputs(loss, outputs.values()), options, where);
}

namespace {

/// Restores values that `Recorded` drops. Values that stay are not held, since holding them would
/// make them belong to the user.
std::optional<RestoredValues> restored_after(const LossAndOutputs& values) {
  Tape& tape = values.loss.tape();
  std::vector<ValueId> present;
  append_present(tape, present);
  if (!are_among(present, computed_values(values))) return {};
  return std::optional<RestoredValues>(std::in_place, tape, present);
}

/// The tape in whose place `tape` is computed, if it is another one.
Tape* other_than(const Tape& tape, Tape& recorded) {
  return &tape == &recorded ? nullptr : &recorded;
}

/// Calls `ask(engine, tape, recorded, options)` for the program that `backward` would run.
template <class Ask>
decltype(auto) ask_of_backward(const LossAndOutputs& values, const RunOptions& options,
                               const char* operation, const Where& where, Ask ask) {
  Tape& recorded_tape = tape_of(values, operation, where);
  const InUse::Use use_of_recorded(recorded_tape.in_use(), tape_use::asking, operation, &where);
  EngineEvaluator& asked = evaluator_of(recorded_tape, operation, where);
  const auto held = asked.hold_temporary(recorded_tape);
  const LossAndOutputs computed = computed_for(asked, with_further_outputs(values));
  Tape& tape = computed.loss.tape();
  const InUse::Use use(tape.in_use(), tape_use::asking, operation, &where);
  EngineEvaluator& evaluator = evaluator_of(tape, operation, where);
  const RunOptions run = evaluator.prepare(tape, options);
  const std::optional<RestoredValues> restored = restored_after(computed);
  const Recorded recorded(computed, other_than(tape, recorded_tape), run, where);
  return ask(evaluator.engine(), tape, recorded, run);
}

/// Calls `ask(engine, tape, targets, options)` for the program that `evaluate` would run.
template <class Ask>
auto ask_of_values(std::span<const Var> values, const RunOptions& options, const char* operation,
                   const Where& where, Ask ask) {
  Tape* tape = &common_tape(values, operation, where);
  const InUse::Use use_of_recorded(tape->in_use(), tape_use::asking, operation, &where);
  EngineEvaluator* evaluator = &evaluator_of(*tape, operation, where);
  const auto held = evaluator->hold_temporary(*tape);
  const std::vector<Var> computed = evaluator->computed_for(*tape, values);
  if (!computed.empty() && !computed[0].belongs_to(*tape)) {
    tape = &computed[0].tape();
    evaluator = &evaluator_of(*tape, operation, where);
  }
  const InUse::Use use(tape->in_use(), tape_use::asking, operation, &where);
  std::vector<ValueId> targets;
  for (const Var& value : computed) targets.push_back(value.id());
  const RunOptions run = evaluator->prepare(*tape, options);
  if (run.memory_budget == unlimited) append_present(*tape, targets);
  return ask(evaluator->engine(), *tape, targets, run);
}

}  // namespace

Plan plan_backward(const LossAndOutputs& values, const RunOptions& options, Where where) {
  return ask_of_backward(
      values, options, "plan_backward", where,
      [](Engine& engine, Tape& tape, const Recorded& recorded, const RunOptions& run) {
        return engine.plan(tape, recorded.targets, recorded.backward_begins, run);
      });
}

std::ostream& write_dot(std::ostream& stream, const LossAndOutputs& values,
                        const RunOptions& options, Where where) {
  return ask_of_backward(values, options, "write_dot", where,
                         [&](Engine& engine, Tape& tape, const Recorded& recorded,
                             const RunOptions& run) -> std::ostream& {
                           const Plan plan =
                               engine.plan(tape, recorded.targets, recorded.backward_begins, run);
                           return write_dot(stream, tape, plan.runs);
                         });
}

std::ostream& write_compilation(std::ostream& stream, const LossAndOutputs& values,
                                const RunOptions& options, DumpLevel level, Where where) {
  using enum DumpLevel;
  require_enumerator(level, {passes, plan, instructions, native, all}, "write_compilation",
                     "the level", where);
  return ask_of_backward(values, options, "write_compilation", where,
                         [&](Engine& engine, Tape& tape, const Recorded& recorded,
                             const RunOptions& run) -> std::ostream& {
                           engine.write_compilation(stream, tape, recorded.targets,
                                                    recorded.backward_begins, run, level);
                           return stream;
                         });
}

Forecast forecast_backward(const LossAndOutputs& values, const RunOptions& options,
                           const Rates& rates, Where where) {
  return ask_of_backward(
      values, options, "forecast_backward", where,
      [&](Engine& engine, Tape& tape, const Recorded& recorded, const RunOptions& run) {
        return engine.forecast(tape, recorded.targets, recorded.backward_begins, run, rates);
      });
}

void write_graph(const LossAndOutputs& values, const std::string& path, const RunOptions& options,
                 Where where) {
  Tape& recorded_tape = tape_of(values, "write_graph", where);
  const InUse::Use use_of_recorded(recorded_tape.in_use(), tape_use::asking, "write_graph", &where);
  EngineEvaluator& asked = evaluator_of(recorded_tape, "write_graph", where);
  const auto held = asked.hold_temporary(recorded_tape);
  const LossAndOutputs computed = computed_for(asked, with_further_outputs(values));
  Tape& tape = computed.loss.tape();
  const InUse::Use use(tape.in_use(), tape_use::asking, "write_graph", &where);
  EngineEvaluator& evaluator = evaluator_of(tape, "write_graph", where);
  const RunOptions run = evaluator.prepare(tape, options);
  const Recorded recorded(computed, other_than(tape, recorded_tape), where);
  write_graph(evaluator.engine().graph(tape, recorded.targets, recorded.backward_begins, run),
              path);
}

Report evaluate(std::span<const Var> values, const RunOptions& options, Where where) {
  Tape& tape = common_tape(values, "evaluate", where);
  const InUse::Use use(tape.in_use(), tape_use::asking, "evaluate", &where);
  EngineEvaluator& asked = evaluator_of(tape, "evaluate", where);
  Report report =
      ask_of_values(values, options, "evaluate", where,
                    [](Engine& engine, Tape& tape, std::span<const ValueId> targets,
                       const RunOptions& run) { return engine.evaluate(tape, targets, run); });
  report.precision = asked.precision();
  renew(values);
  return report;
}

Report evaluate(const Var& value, const RunOptions& options, Where where) {
  return evaluate({&value, 1}, options, where);
}

Forecast forecast_values(std::span<const Var> values, const RunOptions& options, const Rates& rates,
                         Where where) {
  return ask_of_values(
      values, options, "forecast_values", where,
      [&](Engine& engine, Tape& tape, std::span<const ValueId> targets, const RunOptions& run) {
        return engine.forecast(tape, targets, tape.node_count(), run, rates);
      });
}

}  // namespace palimpsest
