#include "strategy/backward.h"

#include <algorithm>

#include "autodiff/gradient.h"
#include "checkpoint/dot.h"
#include "checkpoint/planning_files.h"
#include "strategy/base/parameters.h"
#include "strategy/compile/step_cache.h"
#include "strategy/evaluators/engine.h"
#include "strategy/evaluators/evaluators.h"
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

Gradients::Gradients(Tensor loss, std::vector<Entry> entries, Report report)
    : loss_(std::move(loss)), entries_(std::move(entries)), report_(std::move(report)) {}

const Tensor& Gradients::operator[](const Var& parameter) const {
  const auto entry = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& candidate) {
    return candidate.parameter == parameter;
  });
  if (entry == entries_.end()) {
    throw ArgumentError(
        "[gradients] the Var is not a parameter of the tape; record it with tape.parameter(), or "
        "use gradient(y, x) for derivatives with respect to other values");
  }
  return entry->gradient;
}

namespace {

EngineEvaluator& evaluator_of(Tape& tape, const char* operation, const Where& where) {
  if (tape.evaluator() == nullptr) tape.set_evaluator(lazy());
  auto* evaluator = dynamic_cast<EngineEvaluator*>(tape.evaluator().get());
  if (evaluator == nullptr) {
    throw ArgumentError(operation,
                        "the tape's evaluator has no engine; use lazy(), eager(), hybrid() or none",
                        where);
  }
  return *evaluator;
}

bool is_alone(std::span<const ValueId> present, const Var& loss) {
  return present.size() == 1 && present[0] == loss.id();
}

/// The loss, and its gradients recorded temporarily: the tape removes them again.
struct Recorded {
  Tape::Temporary temporary;
  NodeId backward_begins;
  std::vector<Var> parameters;
  std::vector<Var> gradients;
  std::vector<ValueId> targets;
  bool has_leaves_only = true;

  Recorded(const Var& loss, const Where& where)
      : temporary(loss.tape()), backward_begins(loss.tape().node_count()) {
    Tape& tape = loss.tape();
    require_scalar(loss, where);
    parameters = parameters_of(tape);
    gradients = vjp({&loss, 1}, parameters, {}, where);
    targets.push_back(loss.id());
    for (const Var& gradient : gradients) targets.push_back(gradient.id());
  }

  Recorded(const Var& loss, const RunOptions& options, const Where& where) : Recorded(loss, where) {
    // If only the loss of an earlier call is present, it is dropped. This call then runs the
    // program planned for the earlier one.
    std::vector<ValueId> present;
    append_present(loss.tape(), present);
    if (is_alone(present, loss)) {
      loss.tape().drop(loss.id());
      present.clear();
    }
    has_leaves_only = present.empty();
    // Without a budget nothing forces present values out, and an eager user wants to inspect them.
    if (options.memory_budget == unlimited) {
      targets.insert(targets.end(), present.begin(), present.end());
    }
  }

  Differentiated differentiated() const {
    return {targets[0], backward_begins, {targets.begin() + 1, targets.end()}};
  }
};

Var computed_for(EngineEvaluator& evaluator, const Var& loss) {
  return evaluator.computed_for(loss.tape(), {&loss, 1})[0];
}

/// Turns the gradients of a tape computed in place of `tape` into gradients of `tape`.
Gradients of_tape(Tape& tape, const Var& loss, const Gradients& computed,
                  const EngineEvaluator& evaluator) {
  const std::vector<Var> parameters = parameters_of(tape);
  std::vector<Gradients::Entry> entries;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    entries.push_back({parameters[i], computed.entries()[i].gradient});
  }
  Report report = computed.report();
  report.precision = evaluator.precision();
  return Gradients(loss.value(), std::move(entries), std::move(report));
}

}  // namespace

Gradients backward(const Var& loss, const RunOptions& options, Where where) {
  if (!loss.defined()) throw_foreign(loss, "backward", where);
  Tape& tape = loss.tape();
  EngineEvaluator& evaluator = evaluator_of(tape, "backward", where);
  if (const Var computed = computed_for(evaluator, loss); !computed.belongs_to(tape)) {
    return of_tape(tape, loss, backward(computed, options, where), evaluator);
  }
  Engine& engine = evaluator.engine();
  const RunOptions run = evaluator.prepare(tape, options);
  std::vector<Gradients::Entry> entries;
  if (const auto repeated = engine.repeat(tape, loss.id(), run)) {
    const std::vector<Var> parameters = parameters_of(tape);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      entries.push_back({parameters[i], repeated->gradients[i]});
    }
    return Gradients(loss.value(), std::move(entries), repeated->report);
  }
  const Recorded recorded(loss, run, where);
  Report report = engine.evaluate(tape, recorded.targets, recorded.backward_begins, run);
  for (std::size_t i = 0; i < recorded.parameters.size(); ++i) {
    entries.push_back({recorded.parameters[i], recorded.gradients[i].value()});
  }
  if (report.plan_reused && recorded.has_leaves_only) {
    engine.remember(tape, recorded.differentiated());
  }
  return Gradients(loss.value(), std::move(entries), std::move(report));
}

namespace {

/// Restores, on destruction, a loss that `Recorded` drops. A loss that stays is not held, since
/// holding it would make it belong to the user.
class Kept {
 public:
  explicit Kept(const Var& loss) : tape_(loss.tape()), value_(loss.id()) {
    std::vector<ValueId> present;
    append_present(tape_, present);
    if (is_alone(present, loss)) buffer_ = tape_.buffer(value_);
  }
  ~Kept() {
    if (buffer_ != nullptr && !tape_.has_value(value_)) tape_.set_buffer(value_, buffer_);
  }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;

 private:
  Tape& tape_;
  ValueId value_;
  Buffer buffer_;
};

/// Calls `ask(engine, tape, recorded, options)` for the program that `backward` would run.
template <class Ask>
decltype(auto) ask_of_backward(Var loss, const RunOptions& options, const char* operation,
                               const Where& where, Ask ask) {
  if (!loss.defined()) throw_foreign(loss, operation, where);
  EngineEvaluator* evaluator = &evaluator_of(loss.tape(), operation, where);
  if (const Var computed = computed_for(*evaluator, loss); !computed.belongs_to(loss.tape())) {
    loss = computed;
    evaluator = &evaluator_of(loss.tape(), operation, where);
  }
  Tape& tape = loss.tape();
  const RunOptions run = evaluator->prepare(tape, options);
  const Kept kept(loss);
  const Recorded recorded(loss, run, where);
  return ask(evaluator->engine(), tape, recorded, run);
}

/// Calls `ask(engine, tape, targets, options)` for the program that `evaluate` would run.
template <class Ask>
auto ask_of_values(std::span<const Var> values, const RunOptions& options, const char* operation,
                   const Where& where, Ask ask) {
  Tape* tape = &common_tape(values, operation, where);
  EngineEvaluator* evaluator = &evaluator_of(*tape, operation, where);
  const std::vector<Var> computed = evaluator->computed_for(*tape, values);
  if (!computed.empty() && !computed[0].belongs_to(*tape)) {
    tape = &computed[0].tape();
    evaluator = &evaluator_of(*tape, operation, where);
  }
  std::vector<ValueId> targets;
  for (const Var& value : computed) targets.push_back(value.id());
  const RunOptions run = evaluator->prepare(*tape, options);
  if (run.memory_budget == unlimited) append_present(*tape, targets);
  return ask(evaluator->engine(), *tape, targets, run);
}

}  // namespace

Plan plan_backward(const Var& loss, const RunOptions& options, Where where) {
  return ask_of_backward(
      loss, options, "plan_backward", where,
      [](Engine& engine, Tape& tape, const Recorded& recorded, const RunOptions& run) {
        return engine.plan(tape, recorded.targets, recorded.backward_begins, run);
      });
}

std::ostream& write_dot(std::ostream& stream, const Var& loss, const RunOptions& options,
                        Where where) {
  return ask_of_backward(loss, options, "write_dot", where,
                         [&](Engine& engine, Tape& tape, const Recorded& recorded,
                             const RunOptions& run) -> std::ostream& {
                           const Plan plan =
                               engine.plan(tape, recorded.targets, recorded.backward_begins, run);
                           return write_dot(stream, tape, plan.runs);
                         });
}

std::ostream& write_compilation(std::ostream& stream, const Var& loss, const RunOptions& options,
                                DumpLevel level, Where where) {
  return ask_of_backward(loss, options, "write_compilation", where,
                         [&](Engine& engine, Tape& tape, const Recorded& recorded,
                             const RunOptions& run) -> std::ostream& {
                           engine.write_compilation(stream, tape, recorded.targets,
                                                    recorded.backward_begins, run, level);
                           return stream;
                         });
}

Forecast forecast_backward(const Var& loss, const RunOptions& options, const Rates& rates,
                           Where where) {
  return ask_of_backward(
      loss, options, "forecast_backward", where,
      [&](Engine& engine, Tape& tape, const Recorded& recorded, const RunOptions& run) {
        return engine.forecast(tape, recorded.targets, recorded.backward_begins, run, rates);
      });
}

void write_graph(const Var& loss, const std::string& path, const RunOptions& options, Where where) {
  if (!loss.defined()) throw_foreign(loss, "write_graph", where);
  Tape& tape = loss.tape();
  EngineEvaluator& evaluator = evaluator_of(tape, "write_graph", where);
  if (const Var computed = computed_for(evaluator, loss); !computed.belongs_to(tape)) {
    return write_graph(computed, path, options, where);
  }
  const RunOptions run = evaluator.prepare(tape, options);
  const Recorded recorded(loss, where);
  write_graph(evaluator.engine().graph(tape, recorded.targets, recorded.backward_begins, run),
              path);
}

Report evaluate(std::span<const Var> values, const RunOptions& options, Where where) {
  EngineEvaluator& asked = evaluator_of(common_tape(values, "evaluate", where), "evaluate", where);
  Report report =
      ask_of_values(values, options, "evaluate", where,
                    [](Engine& engine, Tape& tape, std::span<const ValueId> targets,
                       const RunOptions& run) { return engine.evaluate(tape, targets, run); });
  report.precision = asked.precision();
  return report;
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
