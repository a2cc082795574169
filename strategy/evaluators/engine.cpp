#include "strategy/evaluators/engine.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "autodiff/execute.h"
#include "autodiff/interpreter.h"
#include "checkpoint/block.h"
#include "checkpoint/engine_planner.h"
#include "checkpoint/node_seconds.h"
#include "strategy/base/profile.h"
#include "strategy/base/stopwatch.h"
#include "strategy/compile/compile.h"
#include "strategy/compile/form_choice.h"
#include "strategy/compile/fusion/fingerprint.h"
#include "strategy/evaluators/collected_runs.h"
#include "strategy/evaluators/evaluators.h"
#include "strategy/evaluators/result_cache.h"
#include "strategy/loops/loop_budgets.h"
#include "strategy/run/present.h"
#include "strategy/run/report_of.h"
#include "strategy/run/tape_runner.h"

namespace palimpsest {
namespace {

/// True if only leaves are present and, from an earlier run, possibly `values`.
bool has_leaves_only(const Tape& tape, std::span<const ValueId> values) {
  std::vector<ValueId> others;
  append_present(tape, others);
  return are_among(others, values);
}

/// The hash of a program's structure, its targets, where its backward part begins, and its budget.
using ProgramWithin = std::tuple<std::uint64_t, std::vector<ValueId>, NodeId, Bytes>;

ProgramWithin program_within(const Tape& tape, std::span<const ValueId> targets,
                             NodeId backward_begins, const RunOptions& options) {
  const std::uint64_t program = hash_of_structure(tape, std::max(options.threads, 1));
  return {program, {targets.begin(), targets.end()}, backward_begins, options.memory_budget};
}

/// The first run of a program, which found no results and kept none.
struct FirstRun {
  Bytes peak;
  double seconds;   // as planned
  double overhead;  // as `Plan::compute_overhead`

  explicit FirstRun(const Report& report)
      : peak(report.predicted_peak),
        seconds(report.explanation->plan().simulation.cost),
        overhead(report.compute_overhead) {}

  /// True if a plan takes longer because it makes room.
  bool is_cheaper_than(const Plan& plan) const {
    constexpr double rounding = 1e-9;
    return plan.simulation.cost > seconds && plan.compute_overhead() > overhead + rounding;
  }
};

/// The run reads no value that is out of date. It computes those among its targets again.
void begin_with_current(Tape& tape, std::span<const ValueId> targets, const RunOptions& options) {
  tape.notice_writes();
  tape.require_current(targets);
  for (const ValueId target : targets) tape.outdated().erase(target);
  if (options.memory_budget != unlimited) tape.force_out_outdated();
}

/// The engine and a tape, while a run or plan is made. Nodes of the tape cannot change.
class Engaged {
 public:
  Engaged(InUse& engine, Tape& tape, const char* function)
      : engine_(engine, engine_is_running, function),
        tape_(tape.in_use(), tape_use::computing, function) {}

 private:
  InUse::Use engine_;
  InUse::Use tape_;
};

}  // namespace

struct Engine::State {
  InUse in_use{"evaluator"};
  TapeRunner runner;
  ProgramCache cache;
  LoopBudgets loops;
  std::optional<ResultCache> results;  // for runs that keep results
  /// The first runs of programs. Runs with kept results take no more. Empty where that left no room
  /// for results.
  std::map<ProgramWithin, std::optional<FirstRun>> first_runs;
  bool keeps_values_within_first_run = false;
  FreeMemory free = [] { return free_memory(); };
  RunObserver* observer = nullptr;
  CollectedRuns collected;
  std::uint64_t programs_planned = 0;  // programs and budgets that a plan was made for

  /// Compiles for a run, using the plans and memory of earlier runs.
  Compilation compile_for_run(Tape& tape, const ProgramSpec& spec, const RunOptions& options,
                              CachedStep* step = nullptr);
  /// Runs a program that was compiled since `planning` began.
  Report run(Tape& tape, const Compilation& compiled, const ProgramSpec& spec,
             std::span<const ValueId> observed, double planning_seconds, const RunOptions& options,
             std::uint32_t round = 0);

  /// Compiles and runs without cached results. Throws `BudgetError` before a run that takes longer
  /// than `first`, if any, to make room.
  Report evaluate_all(Tape& tape, std::span<const ValueId> targets, NodeId backward_begins,
                      const RunOptions& options, const FirstRun* first = nullptr);
  /// Likewise. If no plan fits in addition to the present values, they are dropped. The budget
  /// named in an error then does not depend on the values that an evaluator has kept.
  Report evaluate_or_let_go(Tape& tape, std::span<const ValueId> targets, NodeId backward_begins,
                            const RunOptions& options);
  /// Likewise, with results kept.
  Report evaluate_cached(Tape& tape, std::span<const ValueId> targets, NodeId backward_begins,
                         const RunOptions& options);
  /// Runs with kept results, and keeps new ones. Throws `BudgetError` where the run would take more
  /// memory or, to make room, more time than `first`, if any.
  Report evaluate_with_results(Tape& tape, std::span<const ValueId> targets, NodeId backward_begins,
                               const RunOptions& options, const FirstRun* first);

  /// Compiles without running, by the whole planner unless a fast first plan is asked for. Calls
  /// `use(compilation, spec)` while the loops' memory is reserved.
  template <class Use>
  auto compile_only(ProgramCache& programs, Tape& tape, std::span<const ValueId> targets,
                    NodeId backward_begins, const RunOptions& options, Use use, bool afresh = false,
                    CompileLog* log = nullptr, bool fast_first_plan = false) {
    check(options);
    const Engaged engaged(in_use, tape, "plan");
    tape.notice_writes();
    tape.require_current(targets);
    require_leaves(tape, targets);
    const std::vector<NodeId> held = afresh ? std::vector<NodeId>() : nodes_held_elsewhere(tape);
    ProgramSpec spec = spec_for(targets, backward_begins, options, held);
    spec.afresh = afresh;
    const LoopBudgetScope scope(tape);
    const CompileContext context{.cache = programs,
                                 .loops = &loops,
                                 .fast_first_plan = fast_first_plan,
                                 .free_memory = &free,
                                 .kept = runner.memory().kept() + spare_bytes(),
                                 .log = log};
    OrRefusal<Compilation> compiled = compile(tape, spec, options, context);
    std::vector<ValueId> present;
    if (!compiled && !afresh) append_present(tape, present);
    if (present.empty()) return use(std::move(compiled).take(), spec);
    // As in a run, which drops them.
    const RestoredValues restored(tape, present);
    let_go_of_present(tape);
    const ProgramSpec without = spec_for(targets, backward_begins, options, {});
    return use(compile(tape, without, options, context).take(), without);
  }
};

Compilation Engine::State::compile_for_run(Tape& tape, const ProgramSpec& spec,
                                           const RunOptions& options, CachedStep* step) {
  const CompileContext context{
      .cache = cache,
      .loops = step == nullptr ? &loops : nullptr,  // cached steps have none
      .program = step != nullptr ? step->program_for(spec) : nullptr,
      .fast_first_plan = true,
      .free_memory = &free,
      .kept = runner.memory().kept() + spare_bytes(),
      .explains = true,
      .labels_hash = step != nullptr ? std::optional(step->labels_hash) : std::nullopt};
  Compilation compiled = compile(tape, spec, options, context).take();
  if (compiled.is_new) ++programs_planned;
  if (step != nullptr) step->remember(spec, compiled.cached);
  return compiled;
}

Report Engine::State::run(Tape& tape, const Compilation& compiled, const ProgramSpec& spec,
                          std::span<const ValueId> observed, double planning_seconds,
                          const RunOptions& options, std::uint32_t round) {
  RunOptions within = options;
  within.memory_budget = compiled.budget;
  Report report =
      runner.run(tape, compiled.program, {within, spec.threads, round, observer, observed});
  PlanVersion& version = *compiled.version;
  compiled.cached->versions.served(version, report.run_seconds);
  report.budget = compiled.budget;
  report.explanation = version.explanation;
  report.plan_reused = version.reused;
  report.plan_improvements = version.improvement.improvements();
  report.plan_cache = cache.bytes() + runner.metadata_bytes();
  report.planning_seconds = planning_seconds;
  collected.note_run(report, tape, *compiled.program->lowered, *compiled.program->plan,
                     spec.backward_begins);
  return report;
}

Report Engine::State::evaluate_all(Tape& tape, std::span<const ValueId> targets,
                                   NodeId backward_begins, const RunOptions& options,
                                   const FirstRun* first) {
  const std::vector<NodeId> held = nodes_held_elsewhere(tape);
  // Present values in the arena are copied; only their own pages stay mapped meanwhile.
  if (options.memory_budget != unlimited) runner.memory().give_up_held_arena();
  settle_present(tape, held, runner.memory().meter(), options.memory_budget);
  const Stopwatch planning;
  const ProgramSpec spec = spec_for(targets, backward_begins, options, held);
  const LoopBudgetScope scope(tape);
  const Compilation compiled = compile_for_run(tape, spec, options);
  const Plan& plan = *compiled.program->plan;
  if (first != nullptr && first->is_cheaper_than(plan)) {
    throw BudgetError(options.memory_budget, plan.predicted_peak(), plan.planner);
  }
  const bool has_backward = backward_begins < tape.node_count();
  Report report = run(tape, compiled, spec, has_backward ? targets : std::span<const ValueId>(),
                      planning.seconds(), options);
  report.loops = reports_of(loops.loops(), runner.notes());
  return report;
}

Report Engine::State::evaluate_or_let_go(Tape& tape, std::span<const ValueId> targets,
                                         NodeId backward_begins, const RunOptions& options) {
  try {
    return evaluate_all(tape, targets, backward_begins, options);
  } catch (const BudgetError&) {
    if (!let_go_of_present(tape)) throw;
  }
  return evaluate_all(tape, targets, backward_begins, options);
}

Report Engine::State::evaluate_cached(Tape& tape, std::span<const ValueId> targets,
                                      NodeId backward_begins, const RunOptions& options) {
  constexpr std::size_t most_programs = 64;
  if (first_runs.size() > most_programs) first_runs.clear();
  const ProgramWithin program = program_within(tape, targets, backward_begins, options);
  const auto known = first_runs.find(program);
  const bool is_known = known != first_runs.end();
  if (is_known && !known->second) {
    results.reset();
    return evaluate_or_let_go(tape, targets, backward_begins, options);
  }
  const bool is_bounded = keeps_values_within_first_run || backward_begins < tape.node_count();
  const bool is_first = is_bounded && !is_known;
  if (!results || is_first) results.emplace(runner.memory().meter());
  try {
    const FirstRun* const first = is_known ? &*known->second : nullptr;
    Report report = evaluate_with_results(tape, targets, backward_begins, options, first);
    if (is_first) first_runs.emplace(program, FirstRun(report));
    return report;
  } catch (const BudgetError&) {
    results.reset();
  }
  Report report = evaluate_or_let_go(tape, targets, backward_begins, options);
  first_runs.insert_or_assign(program, std::nullopt);
  return report;
}

Report Engine::State::evaluate_with_results(Tape& tape, std::span<const ValueId> targets,
                                            NodeId backward_begins, const RunOptions& options,
                                            const FirstRun* first) {
  std::vector<ValueId> wanted(targets.begin(), targets.end());
  try {
    results->begin(tape, wanted);
  } catch (...) {  // out of memory, half-way from one tape to the next
    results->abandon(tape);
    results.reset();
    throw;
  }
  try {
    if (!results->takes_any()) {
      Report report = evaluate_all(tape, wanted, backward_begins, options);
      results->end(tape);
      report.cached = results->used();
      return report;
    }
    const Bytes most = first != nullptr ? first->peak : options.memory_budget;
    RunOptions within = options;
    Bytes beside = results->held();
    Bytes at_end = 0;
    if (results->makes_any()) {
      // Each value has storage of its own, so that results outlive the others without a copy.
      within.memory = AllocationPolicy::standard;
      at_end = results->at_end(tape, wanted);
    } else {
      beside += results->copied();
    }
    // No plan fits in 0 bytes.
    if (most != unlimited)
      within.memory_budget = std::max(at_end, beside) > most ? 0 : most - beside;
    Report report = evaluate_all(tape, wanted, backward_begins, within, first);
    results->end(tape);
    report.memory = options.memory;
    report.cached = results->used();
    report.cached_bytes = results->bytes();
    for (Bytes* peak : {&report.predicted_peak, &report.measured_peak, &report.predicted_live_peak,
                        &report.measured_live_peak, &report.keep_all_peak}) {
      *peak = std::max(*peak + beside, at_end);
    }
    if (most != unlimited) {
      report.budget = options.memory_budget;
    } else if (report.budget != unlimited) {  // the free memory
      report.budget += beside;
    }
    return report;
  } catch (...) {
    results->abandon(tape);
    throw;
  }
}

Engine::Engine() : state_(std::make_unique<State>()) {}
Engine::~Engine() = default;

const Meter& Engine::meter() const { return state_->runner.memory().meter(); }
std::uint64_t Engine::plans_made() const { return state_->programs_planned; }

Plan Engine::plan(Tape& tape, std::span<const ValueId> targets, NodeId backward_begins,
                  const RunOptions& options) {
  return state_->compile_only(
      state_->cache, tape, targets, backward_begins, options,
      [&](const Compilation& compiled, const ProgramSpec&) { return plan_of(compiled, tape); });
}

void Engine::write_compilation(std::ostream& stream, Tape& tape, std::span<const ValueId> targets,
                               NodeId backward_begins, const RunOptions& options, DumpLevel level) {
  CompileLog log(level);
  ProgramCache own;  // the log shows the work of all passes
  try {
    const auto use = [](const Compilation&, const ProgramSpec&) {};
    state_->compile_only(own, tape, targets, backward_begins, options, use, false, &log);
  } catch (const BudgetError&) {
    log.write(stream);
    throw;
  }
  log.write(stream);
}

Graph Engine::graph(Tape& tape, std::span<const ValueId> targets, NodeId backward_begins,
                    const RunOptions& options) {
  ProgramCache own;  // the graph is that of a tape that has computed nothing
  const auto graph_within = [&](const RunOptions& within) {
    return state_->compile_only(
        own, tape, targets, backward_begins, within,
        [](const Compilation& compiled, const ProgramSpec&) {
          return compiled.program->lowered->graph();
        },
        true);
  };
  try {
    return graph_within(options);
  } catch (const BudgetError&) {
    RunOptions without = options;
    without.memory_budget = unlimited;
    without.planner = nullptr;
    return graph_within(without);
  }
}

Forecast Engine::forecast(Tape& tape, std::span<const ValueId> targets, NodeId backward_begins,
                          const RunOptions& options, const Rates& rates) {
  const auto use = [&](const Compilation& compiled, ProgramSpec spec) {
    const CompiledProgram& program = *compiled.program;
    spec.machine = rates.machine;
    spec.costs = rates.costs.get();
    const auto priced = LoweredForms(tape, spec).get(tape, spec, program.form);
    Executor executor(program.instructions);
    const double seconds = seconds_of_run(priced->graph(), *program.plan, spec.threads,
                                          rates.machine, rates.costs != nullptr);
    RunOptions within = options;
    within.memory_budget = compiled.budget;
    const Bytes peak = RunMemory::peak_of(executor, within);
    return Forecast{plan_of(compiled, tape), peak, seconds, peak};
  };
  Forecast made = state_->compile_only(state_->cache, tape, targets, backward_begins, options, use);
  if (options.memory_budget == unlimited || engine_part(planner_of(options)).fast() == nullptr) {
    return made;
  }
  ProgramCache own;  // nothing is known at the first run
  const auto peak_of = [&](const Compilation& compiled, const ProgramSpec&) {
    RunOptions within = options;
    within.memory_budget = compiled.budget;
    Executor executor(compiled.program->instructions);
    return RunMemory::peak_of(executor, within);
  };
  made.first_peak = state_->compile_only(own, tape, targets, backward_begins, options, peak_of,
                                         false, nullptr, true);
  return made;
}

Report Engine::evaluate(Tape& tape, std::span<const ValueId> targets, const RunOptions& options) {
  return evaluate(tape, targets, tape.node_count(), options);
}

Report Engine::evaluate(Tape& tape, std::span<const ValueId> targets, NodeId backward_begins,
                        const RunOptions& options) {
  check(options);
  const Engaged engaged(state_->in_use, tape, "evaluate");
  begin_with_current(tape, targets, options);
  require_leaves(tape, targets);
  if (options.memory == AllocationPolicy::cached) {
    return state_->evaluate_cached(tape, targets, backward_begins, options);
  }
  state_->results.reset();  // they would take memory in addition to the run
  return state_->evaluate_or_let_go(tape, targets, backward_begins, options);
}

std::optional<Engine::Repeated> Engine::repeat(Tape& tape, std::span<const ValueId> values,
                                               const RunOptions& options) {
  check(options);
  if (options.memory == AllocationPolicy::cached)
    return {};  // such runs differ from one to the next
  const Engaged engaged(state_->in_use, tape, "backward");
  begin_with_current(tape, values, options);
  const Stopwatch planning;
  CachedStep* const step = state_->cache.steps().find(tape, values);
  if (step == nullptr || !has_leaves_only(tape, values)) return {};
  state_->cache.steps().use(*step);
  state_->results.reset();
  Tape& known = step->tape;
  for (const ValueId value : values) tape.drop(value);  // the run computes them again
  const LentToStep lent(*step, tape);
  const ProgramSpec spec = spec_for(step->targets, step->recorded.backward_begins, options);
  const Compilation compiled = state_->compile_for_run(known, spec, options, step);
  const std::uint32_t round = tape.generation() - known.generation();
  Repeated repeated{
      state_->run(known, compiled, spec, step->targets, planning.seconds(), options, round), {}};
  for (const ValueId gradient : step->recorded.gradients) {
    repeated.gradients.push_back(known.value(gradient));
  }
  for (const ValueId value : values) {
    if (!tape.has_value(value)) tape.set_buffer(value, known.buffer(value));
  }
  return repeated;
}

void Engine::remember(const Tape& tape, const Differentiated& recorded) {
  state_->cache.steps().add(tape, recorded);
}

int Engine::threads(const RunOptions& options) { return checked_threads(options.threads); }

void Engine::set_free_memory(FreeMemory free) { state_->free = std::move(free); }

void Engine::keep_values_within_first_run() { state_->keeps_values_within_first_run = true; }

void Engine::set_observer(RunObserver* observer) { state_->observer = observer; }

InUse& Engine::in_use() { return state_->in_use; }

void Engine::release_arena() {
  state_->in_use.require(InUse::Level::alone, "release_memory");
  state_->runner.memory().give_up();
  state_->results.reset();
}

void Engine::share_arena() { state_->runner.memory().share_arena(); }

void Engine::use_no_arena() { state_->runner.memory().use_no_arena(); }

void Engine::collect() { state_->collected.begin(); }

void Engine::add_collected(const Report& run) { state_->collected.add(run); }

Report Engine::take_collected() { return state_->collected.take(); }

void Engine::compute_now(Tape& tape, NodeId node, const RunOptions& options) {
  const Engaged engaged(state_->in_use, tape, "compute");
  if (options.stop.stop_requested()) RunControl::throw_stopped();
  const int threads = checked_threads(options.threads);
  const Meter& meter = state_->runner.memory().meter();
  Report run;
  const auto allocate = [&](Bytes bytes) {
    ++run.allocations;
    return meter.allocate(bytes);
  };
  const Stopwatch running;
  state_->runner.threads(threads).execute(
      [&] { execute_on_tape(tape, node, allocate, options.anomaly); });
  if (!state_->collected.has_begun() || tape.operation(node).view) return;
  const double seconds = seconds_of(NodeView(tape.nodes(), node), options.machine);
  const bool again = state_->collected.note(tape, node, seconds);
  run.computed = 1;
  run.recomputed = again ? 1 : 0;
  if (options.profile) {
    run.run_seconds = running.seconds();
    append_step(run, tape, node, again, meter.live());
  }
  state_->collected.add(run);
}

}  // namespace palimpsest
