#include "strategy/program.h"

#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <map>
#include <optional>

#include "autodiff/gradient.h"
#include "autodiff/parallel.h"
#include "autodiff/recording_guards.h"
#include "autodiff/require_function.h"
#include "autodiff/usable_threads.h"
#include "strategy/base/free_memory.h"
#include "strategy/base/loss_counts.h"
#include "strategy/base/parameters.h"
#include "strategy/base/stopwatch.h"
#include "strategy/base/updates.h"
#include "strategy/compile/compile.h"
#include "strategy/compile/form_choice.h"
#include "strategy/evaluators/evaluators.h"
#include "strategy/execution/precision/precise.h"
#include "strategy/execution/precision/translation.h"
#include "strategy/loops/loop_budgets.h"
#include "strategy/program_parts.h"
#include "strategy/run/executor.h"
#include "strategy/run/present.h"
#include "strategy/run/report_of.h"
#include "strategy/run/run_memory.h"

namespace palimpsest {
namespace {

void require_own(const Tape& tape, std::span<const Var> outputs, const Where& where) {
  if (outputs.empty()) {
    throw ArgumentError("program", "the function returned nothing; return the values to compute",
                        where);
  }
  for (const Var& output : outputs) {
    if (!output.defined() || !output.belongs_to(tape)) throw_foreign(output, "program", where);
  }
}

constexpr InUse::Purpose of_program{InUse::Level::computes, "it is the tape of a Program"};

}  // namespace

struct Program::State {
  explicit State(RunOptions run_options) : options(std::move(run_options)) {
    check(options);
    if (options.memory == AllocationPolicy::cached) {
      throw ArgumentError(
          "[program] a Runner does not support memory = cached; choose another RunOptions::memory");
    }
    threads = checked_threads(options.threads);
  }

  /// Records `f`. With a precision, records it again as another program on the same leaves.
  std::vector<Var> record(const Record& f, const Precision* precision, const Where& where) {
    detail::require_function(f, "program", "the argument", "records values", where);
    if (precision != nullptr) {
      const RunOptions looking{.memory_budget = options.memory_budget, .threads = options.threads};
      tape.set_evaluator(precise(*precision, lazy(looking)));
    }
    std::vector<Var> recorded = [&] {
      const ProgramRecording recording(tape);
      return f(tape);
    }();
    require_own(tape, recorded, where);
    if (precision == nullptr) return recorded;
    tape.set_evaluator(nullptr);
    names = recorded;
    return record_again(*precision, tape, recorded);
  }

  /// Compiles the program of the outputs.
  void compile_outputs(NodeId first_adjoint) {
    const Stopwatch planning;
    in_use.emplace(tape.in_use(), of_program, "program");
    backward_begins = first_adjoint;
    std::vector<ValueId> present;  // values read during recording
    append_present(tape, present);
    for (const ValueId value : present) tape.drop(value);
    std::vector<ValueId> targets;
    for (const Var& each : outputs) targets.push_back(each.id());
    ProgramCache cache;
    const FreeMemory free = [] { return free_memory(); };
    const CompileContext context{
        .cache = cache, .loops = &loops, .free_memory = &free, .explains = true};
    const Compilation compiled =
        compile(tape, spec_for(targets, backward_begins, options), options, context).take();
    options.memory_budget = compiled.budget;
    plan = plan_of(compiled, tape);
    instructions = compiled.program->instructions;
    explanation = compiled.version->explanation;
    plan_bytes = cache.bytes();
    planning_seconds = planning.seconds();
  }

  RunOptions options;
  int threads = 1;
  mutable std::atomic<std::uint32_t> runners = 0;  // constructed so far
  Tape tape;
  std::optional<InUse::Use> in_use;  // from compilation on, because Runners read the tape
  Plan plan;
  std::shared_ptr<const Instructions> instructions;
  std::shared_ptr<const Explanation> explanation;
  LoopBudgets loops;
  Bytes plan_bytes = 0;  // of the compiled program and its plan
  double planning_seconds = 0;
  NodeId backward_begins = none;
  std::vector<Var> outputs;
  std::vector<Var> names;  // values as recorded by `f`, for the first outputs; empty: outputs
  /// The number of outputs before the gradients of `parameters`: a loss and auxiliary ones. 0 for a
  /// program of values.
  std::size_t differentiated = 0;
  std::size_t requested = 0;          // auxiliary outputs; those after them are values of `updates`
  LossCounts counts;                  // without numbers
  std::size_t counted = 0;            // the last outputs, which are the counts of the loss
  std::vector<Tape::Update> updates;  // of every run
  std::vector<Var> updated_leaves;    // of their targets, where they have any
  std::vector<Var> parameters;
};

Program Program::of_values(const Record& record, const Precision* precision, RunOptions options,
                           const Where& where) {
  const auto state = std::make_shared<State>(std::move(options));
  state->outputs = state->record(record, precision, where);
  state->compile_outputs(state->tape.node_count());
  return Program(state);
}

Program Program::of_gradients(const RecordLoss& record, const Precision* precision,
                              RunOptions options, const Where& where) {
  detail::require_function(record, "program", "the argument", "records a loss", where);
  const auto state = std::make_shared<State>(std::move(options));
  const auto record_all = [&](Tape& tape) {
    LossAndOutputs made = record(tape);
    std::vector<Var> all{made.loss};
    all.insert(all.end(), made.outputs.begin(), made.outputs.end());
    state->requested = made.outputs.size();
    for (const Tape::Update& update : tape.updates()) {
      state->updates.push_back(update);
      state->updated_leaves.push_back(tape.find_leaf(update.target));
      all.push_back(tape.var(update.value));
    }
    tape.forget_updates();
    if (!made.loss.defined() || !made.loss.belongs_to(tape)) return all;  // an error, below
    const RecordedCounts counts(made.loss);
    state->counted = counts.size();
    state->counts.has_other_terms = counts.has_other_terms();
    made.outputs.clear();
    counts.append_to(made);
    all.insert(all.end(), made.outputs.begin(), made.outputs.end());
    return all;
  };
  state->outputs = state->record(record_all, precision, where);
  const auto counts = state->outputs.end() - static_cast<std::ptrdiff_t>(state->counted);
  const std::vector<Var> counted(counts, state->outputs.end());
  state->outputs.erase(counts, state->outputs.end());
  if (!state->names.empty()) state->names.resize(state->outputs.size());
  const Var loss = state->outputs.front();
  require_scalar(loss, where);
  const NodeId backward_begins = state->tape.node_count();
  state->differentiated = state->outputs.size();
  state->parameters = parameters_of(state->tape);
  if (state->parameters.empty()) throw_without_parameters("program", "Program::values()", where);
  const std::vector<Var> gradients = [&] {
    const ProgramRecording recording(state->tape);
    return vjp({&loss, 1}, state->parameters, {}, where);
  }();
  state->outputs.insert(state->outputs.end(), gradients.begin(), gradients.end());
  state->outputs.insert(state->outputs.end(), counted.begin(), counted.end());
  state->compile_outputs(backward_begins);
  return Program(state);
}

Program Program::values(const Record& record, RunOptions options, Where where) {
  return of_values(record, nullptr, std::move(options), where);
}
Program Program::values(const Record& record, const Precision& precision, RunOptions options,
                        Where where) {
  return of_values(record, &precision, std::move(options), where);
}
Program Program::gradients(const RecordLoss& record, RunOptions options, Where where) {
  return of_gradients(record, nullptr, std::move(options), where);
}
Program Program::gradients(const RecordLoss& record, const Precision& precision, RunOptions options,
                           Where where) {
  return of_gradients(record, &precision, std::move(options), where);
}

std::span<const Var> Program::outputs() const& {
  return std::span(state_->outputs).first(state_->outputs.size() - state_->counted);
}
const Tape& Program::tape() const { return state_->tape; }
const Plan& Program::plan() const& { return state_->plan; }

ProgramParts parts_of(const Program& program) {
  const Program::State& state = *program.state_;
  return {.outputs = program.outputs(),
          .names = state.names,
          .backward_begins = state.backward_begins,
          .differentiated = state.differentiated,
          .parameters = state.parameters,
          .updates = state.updates};
}

struct Runner::State {
  explicit State(Program from)
      : program(std::move(from)),
        executor(program.state_->instructions),
        threads(program.state_->threads),
        round(0, program.state_->runners++) {
    const std::span<const ValueId> sources = executor.instructions().sources();
    for (std::size_t k = 0; k < sources.size(); ++k) {
      bind(k, program.tape().buffer(sources[k]));
    }
  }

  void bind(std::size_t source, Buffer buffer) {
    executor.set_source(source, buffer);
    leaves.resize(std::max(leaves.size(), source + 1));
    leaves[source] = std::move(buffer);
  }

  void require_ran() const {
    if (ran) return;
    throw ArgumentError(failed
                            ? "[program] the last run failed and left no results; call run() again"
                            : "[program] the program has not run; call run() first");
  }

  Tensor value(Var output) {
    require_ran();
    const std::vector<Var>& names = program.state_->names;
    const auto name = std::find(names.begin(), names.end(), output);
    if (name != names.end())
      output = program.outputs()[static_cast<std::size_t>(name - names.begin())];
    const Instructions& instructions = executor.instructions();
    const auto results = instructions.results();
    const auto result = std::find_if(results.begin(), results.end(), [&](const auto& held) {
      return output.defined() && output.belongs_to(program.tape()) && held.value == output.id();
    });
    if (result == results.end()) {
      throw ArgumentError(
          "[program] the Var is not an output of the program; return it from the recorded "
          "function");
    }
    const Instructions::Place place = result->place;
    if (instructions.is_source(place)) {
      return {leaves[place - instructions.source_place(0)], output.shape(), output.dtype()};
    }
    Buffer& buffer = given[place];
    if (buffer == nullptr) buffer = executor.storage(place);
    return {buffer, output.shape(), output.dtype()};
  }

  Program program;
  RunMemory memory;
  Executor executor;
  tbb::task_arena threads;
  std::vector<Buffer> leaves;       // by source
  std::map<ValueId, Tensor> bound;  // instead of the recorded tensors
  /// The buffers of this run's results. All tensors of one place share a buffer, so its use count
  /// shows that it is shared.
  std::map<Instructions::Place, Buffer> given;
  Round round;
  InUse in_use{"Runner"};
  bool ran = false;
  bool failed = false;  // the last run threw an exception
  double run_seconds = 0;

  /// Copies values to the tensors that they update: the bound ones, where others were bound.
  void update() {
    const Program::State& own = *program.state_;
    std::vector<Tape::Update> updates = own.updates;
    std::vector<Tensor> values;
    for (std::size_t i = 0; i < updates.size(); ++i) {
      const Var& leaf = own.updated_leaves[i];
      const auto other = leaf.defined() ? bound.find(leaf.id()) : bound.end();
      if (other != bound.end()) updates[i].target = other->second;
      values.push_back(value(own.outputs[1 + own.requested + i]));
    }
    apply_updates(updates, values);
  }

  Report report() const;

  /// Reading the clock twice takes as long as a small run, so few small runs are timed.
  bool is_timed() const { return run_seconds == 0 || run_seconds > 1e-5 || round.run % 16 == 0; }
};

Runner::Runner(Program program) : state_(std::make_unique<State>(std::move(program))) {}
Runner::~Runner() = default;
Runner::Runner(Runner&&) noexcept = default;
Runner& Runner::operator=(Runner&&) noexcept = default;

void Runner::bind(const Var& leaf, const Tensor& tensor) {
  const InUse::Use use(state_->in_use, call_in_progress, "Runner::bind");
  const Tape& tape = state_->program.tape();
  if (!leaf.defined() || !leaf.belongs_to(tape) || !tape.is_leaf(leaf.node())) {
    throw ArgumentError(
        "[program] only a parameter or constant of the program can be given another tensor; record "
        "one with Tape::parameter() or Tape::constant()");
  }
  if (!tensor.defined())
    throw ArgumentError("[program] the tensor is empty; assign a tensor first");
  const ValueType type = leaf.type();
  if (tensor.shape() != type.shape) {
    throw ShapeError("program",
                     "the tensor has shape " + to_string(tensor.shape()) + " for " +
                         tape.describe(leaf.node()) + " of shape " + to_string(type.shape) +
                         "; record the program again for other shapes",
                     tape.where(leaf.node()));
  }
  if (tensor.dtype() != type.dtype) {
    throw DTypeError("program",
                     "the tensor is " + std::string(name_of(tensor.dtype())) + " for " +
                         tape.describe(leaf.node()) + " of " + std::string(name_of(type.dtype)) +
                         "; convert it with to()",
                     tape.where(leaf.node()));
  }
  const std::span<const ValueId> sources = state_->executor.instructions().sources();
  const auto source = std::find(sources.begin(), sources.end(), leaf.id());
  state_->bound.insert_or_assign(leaf.id(), tensor);
  if (source == sources.end()) return;  // nothing reads it
  state_->bind(static_cast<std::size_t>(source - sources.begin()), tensor.buffer());
}

void Runner::set_part(std::uint32_t part) {
  const InUse::Use use(state_->in_use, call_in_progress, "Runner::set_part");
  state_->round.part = part;
}

std::uint32_t Runner::part() const { return state_->round.part; }

void Runner::run() {
  const InUse::Use use(state_->in_use, call_in_progress, "Runner::run");
  const Program::State& program = *state_->program.state_;
  std::optional<Stopwatch> stopwatch;
  if (state_->is_timed()) stopwatch.emplace();
  state_->ran = false;
  state_->failed = true;
  state_->given.clear();
  state_->executor.forget();
  const Executor::Memory memory = state_->memory.get(state_->executor, program.options);
  std::optional<RunControl> control;
  if (is_controlled(program.options)) {
    control.emplace(program.options.stop, program.options.progress,
                    program.instructions->steps().size());
  }
  const Executor::Settings settings{.threads = program.threads,
                                    .anomaly = program.options.anomaly,
                                    .profile = program.options.profile,
                                    .round = state_->round,
                                    .control = control ? &*control : nullptr,
                                    .native = decided(program.options.native)};
  const bool is_serial = program.instructions->is_serial();
  const auto carry_out = [&] {
    const SerialScope scope(is_serial);
    state_->executor.run(program.tape, memory, settings);
  };
  if (is_serial) {
    carry_out();
  } else {
    state_->threads.execute(carry_out);
  }
  state_->ran = true;
  state_->failed = false;
  ++state_->round.run;
  if (stopwatch) state_->run_seconds = stopwatch->seconds();
  if (!program.updates.empty()) state_->update();
}

Tensor Runner::value(const Var& output) const {
  const InUse::Use use(state_->in_use, call_in_progress, "Runner::value");
  return state_->value(output);
}

Gradients Runner::gradients() const {
  const InUse::Use use(state_->in_use, call_in_progress, "Runner::gradients");
  const Program::State& program = *state_->program.state_;
  if (program.differentiated == 0) {
    throw ArgumentError(
        "[program] the program computes only values; make it with Program::gradients()");
  }
  std::vector<Gradients::Entry> entries;
  for (std::size_t i = 0; i < program.parameters.size(); ++i) {
    const Var& parameter = program.parameters[i];
    entries.emplace_back(parameter, state_->value(program.outputs[program.differentiated + i]));
    // An optimizer updates the tensor that the run read.
    const auto bound = state_->bound.find(parameter.id());
    if (bound != state_->bound.end()) entries.back().value = bound->second;
  }
  std::vector<Tensor> outputs;
  for (std::size_t i = 1; i <= program.requested; ++i) {
    outputs.push_back(state_->value(program.outputs[i]));
  }
  Gradients gradients(state_->value(program.outputs[0]), std::move(entries), state_->report(),
                      std::move(outputs));
  if (program.counted > 0) {
    LossCounts counts = program.counts;
    for (const Var& count : std::span(program.outputs).last(program.counted)) {
      counts.counts.push_back(state_->value(count).item());
    }
    gradients.set_counts(std::move(counts));
  }
  for (const Buffer& leaf : state_->leaves) gradients.leaves_.push_back(leaf.get());
  return gradients;
}

Report Runner::report() const {
  const InUse::Use use(state_->in_use, call_in_progress, "Runner::report");
  return state_->report();
}

Report Runner::State::report() const {
  const Program::State& own = *program.state_;
  require_ran();
  Report report = report_of(own.tape, own.plan, executor, own.threads, own.options.profile);
  report.explanation = own.explanation;
  report.thread_problem = thread_problem(own.options.threads);
  report.memory = own.options.memory;
  report.predicted_peak = memory.predicted_peak();
  report.loops = reports_of(own.loops.loops(), executor.notes());
  report.plan_cache = own.plan_bytes + executor.metadata_bytes();
  report.planning_seconds = own.planning_seconds;
  report.plan_reused = round.run > 1;
  report.run_seconds = run_seconds;
  return report;
}

}  // namespace palimpsest
