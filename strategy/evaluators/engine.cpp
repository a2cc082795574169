#include "strategy/evaluators/engine.h"

#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <optional>

#include "autodiff/execute.h"
#include "checkpoint/block.h"
#include "checkpoint/node_seconds.h"
#include "strategy/base/profile.h"
#include "strategy/base/stopwatch.h"
#include "strategy/compile/cache_budget.h"
#include "strategy/compile/forms.h"
#include "strategy/compile/fusion/lowered_store.h"
#include "strategy/compile/plan_store.h"
#include "strategy/evaluators/collected_runs.h"
#include "strategy/evaluators/known_steps.h"
#include "strategy/evaluators/result_cache.h"
#include "strategy/loops/loop_room.h"
#include "strategy/run/present.h"
#include "strategy/run/report_of.h"
#include "strategy/run/run_memory.h"
#include "strategy/run/tape_values.h"
#include "strategy/run/watched_run.h"

namespace palimpsest {
namespace {

/// What a program is run by.
struct Found {
  std::shared_ptr<const Lowered> lowered;
  PlanStore::Entry* entry;
};

double cost(const Found& found) { return found.entry->plan.simulation.cost; }

}  // namespace

struct Engine::State {
  RunMemory memory;
  std::optional<ResultCache> results;  // of runs that keep them
  /// A program and its budget that had no room for them.
  std::pair<NodeId, Bytes> no_cache{0, unlimited};
  FreeMemory free = [] { return free_memory(); };
  RunWatch* watch = nullptr;
  CollectedRuns collected;
  LoweredStore lowered;
  PlanStore plans;
  KnownSteps steps;
  LoopRoom room;
  std::uint64_t programs_planned = 0;  // that some plan was made for
  std::optional<tbb::task_arena> threads;

  /// A plan for `program`, which `tape` holds.
  Found find(LoweredStore::Program& program, const Tape& tape, const LoweredStore::Request& request,
             const RunOptions& options);
  Found find_within(LoweredStore::Program& program, const Tape& tape,
                    const LoweredStore::Request& request, const RunOptions& options);
  /// `Engine::evaluate` with results kept.
  Report evaluate_cached(Tape& tape, std::span<const ValueId> targets, NodeId backward_begins,
                         const RunOptions& options);
  /// `Engine::evaluate` without.
  Report evaluate_all(Tape& tape, std::span<const ValueId> targets, NodeId backward_begins,
                      const RunOptions& options);
  /// The same. Where no plan fits beside what is present, that is let go of: a budget that is named
  /// does not depend on what an evaluator has kept so far.
  Report evaluate_or_let_go(Tape& tape, std::span<const ValueId> targets, NodeId backward_begins,
                            const RunOptions& options);
  /// The same as `evaluate_all`; where less memory is free than a run without a budget would take,
  /// nothing but the budget to run with.
  std::optional<Report> evaluate(Tape& tape, std::span<const ValueId> targets,
                                 NodeId backward_begins, const RunOptions& options,
                                 std::optional<Bytes>& chosen);
  /// The budget that a run without one has, if it would take so many bytes. The one `before`
  /// serves while there is memory for it, and not much more, so that its plans do.
  std::optional<Bytes> free_budget(Bytes peak, std::optional<Bytes> before = {}) const {
    const std::optional<Bytes> budget =
        budget_of_free_memory(peak, memory.kept() + spare_bytes(), free);
    const bool is_steady = budget && before && *before <= *budget && *budget / 2 < *before;
    return is_steady ? before : budget;
  }
  /// Runs what was found since `planning` began; who watches is told of `watched`, if that is not
  /// empty.
  Report run(Tape& tape, const Found& found, std::span<const ValueId> watched,
             const Stopwatch& planning, int thread_count, const RunOptions& options,
             std::uint32_t round = 0);

  /// `use(planned, request)` of what a run would follow, while loops have their memory for it.
  template <class Use>
  auto plan(Tape& tape, std::span<const ValueId> targets, NodeId backward_begins,
            const RunOptions& options, Use use, bool afresh = false) {
    check(options);
    const std::vector<NodeId> held = afresh ? std::vector<NodeId>() : nodes_held_elsewhere(tape);
    LoweredStore::Request request{
        targets,         backward_begins,    held, checked_threads(options.threads),
        options.machine, options.costs.get()};
    request.afresh = afresh;
    RunOptions limited = options;
    for (;;) {
      const Bytes budget = limited.memory_budget;
      const LentRoom lent(room, tape, request, limited);
      limited.memory_budget = cache_budget(tape, request, limited);
      Planned planned = plan_tape(tape, request, limited);
      planned.plan.budget = budget;
      limited.memory_budget = unlimited;
      if (takes_free_memory(options) && budget == unlimited) {
        const auto free_bytes = free_budget(planned.plan.predicted_peak());
        limited.memory_budget = free_bytes.value_or(unlimited);
      }
      if (limited.memory_budget == unlimited) return use(planned, request);
    }
  }

  tbb::task_arena& thread_arena(int count) {
    if (!threads || threads->max_concurrency() != count) threads.emplace(count);
    return *threads;
  }

  /// Instructions for the tape at hand, made when the plan runs for the first time.
  Executor& executor_for(const Tape& tape, const Found& found) {
    std::shared_ptr<Executor>& executor = found.entry->executor;
    if (executor == nullptr || &executor->instructions().lowered() != found.lowered.get()) {
      executor = std::make_shared<Executor>(
          std::make_shared<const Instructions>(tape, found.lowered, found.entry->plan));
    }
    return *executor;
  }
};

Found Engine::State::find(LoweredStore::Program& program, const Tape& tape,
                          const LoweredStore::Request& request, const RunOptions& options) {
  if (!has_caches(options.machine)) return find_within(program, tape, request, options);
  const std::pair asked(planner_of(options)->key(), options.memory_budget);
  auto chosen = program.cache_budgets().find(asked);
  if (chosen == program.cache_budgets().end()) {
    const Bytes budget = cache_budget(tape, request, options);
    chosen = program.cache_budgets().emplace(asked, budget).first;
  }
  RunOptions within = options;
  within.memory_budget = chosen->second;
  return find_within(program, tape, request, within);
}

Found Engine::State::find_within(LoweredStore::Program& program, const Tape& tape,
                                 const LoweredStore::Request& request, const RunOptions& options) {
  const std::uint64_t made = plans.made();
  bool known = false;
  // Whether there is a hurry is decided for one form: a hurried plan of another one is no match for
  // a plan in full.
  std::optional<bool> in_a_hurry;
  const auto attempt = [&](LoweredStore::Form form, bool hurried) -> std::optional<Found> {
    const std::shared_ptr<const Lowered>& lowered = program.get(tape, request, form);
    const std::shared_ptr<const Graph> graph = graph_in(lowered);
    const PlanStore::Request wanted{graph, planner_of(options), options.memory_budget};
    PlanStore::Entry* entry = plans.find(wanted);
    known = known || entry != nullptr;
    if (entry == nullptr && !hurried) entry = &plans.make(wanted);
    if (entry == nullptr) {
      if (!in_a_hurry) in_a_hurry = PlanStore::is_in_a_hurry(wanted);
      if (*in_a_hurry) entry = plans.hurry(wanted);
    }
    if (entry == nullptr) return {};
    return Found{lowered, entry};
  };
  const OnePassCost one_pass_cost = [&](LoweredStore::Form form) {
    return program.get(tape, request, form)->one_pass_cost();
  };
  // What is known, or found in a hurry: that serves until there is time for other forms.
  const auto soon = [&](bool simplify) -> std::optional<Found> {
    std::optional<Found> together;
    if (may_fuse(options)) together = attempt({true, simplify}, true);
    const auto apart_cost = [&] { return one_pass_cost({false, simplify}); };
    if (together && suffices(*together, options, apart_cost)) return together;
    // Groups are enough then, and planned in full where that takes no time to speak of.
    if (may_fuse(options) && options.memory_budget == unlimited) return {};
    std::optional<Found> apart = attempt({false, simplify}, true);
    if (apart && together) return cost(*together) <= cost(*apart) ? together : apart;
    if (together && together->entry->hurried) return together;
    if (apart && (apart->entry->hurried || !may_fuse(options))) return apart;
    return {};
  };
  const auto soon_in_some_form = [&]() -> std::optional<Found> {
    const bool simplify = may_simplify(options) && program.is_simplified();
    std::optional<Found> once = soon(simplify);
    if (!simplify || !program.holds_longer()) return once;
    if (once && cost(*once) <= recorded_one_pass_cost(options, one_pass_cost)) return once;
    std::optional<Found> recorded = soon(false);
    if (once && recorded) return cost(*once) <= cost(*recorded) ? once : recorded;
    if (once && once->entry->hurried) return once;
    if (recorded && recorded->entry->hurried) return recorded;
    return {};
  };
  std::optional<Found> found;
  if (!only_form(options)) found = soon_in_some_form();
  if (!found) {
    found = plan_some_form(
        options, program, [&](LoweredStore::Form form) { return *attempt(form, false); },
        one_pass_cost);
  }
  found->entry->plan.keep_all_cost = keep_all_cost(options, program, one_pass_cost);
  if (!known && plans.made() > made) ++programs_planned;
  return *found;
}

Report Engine::State::run(Tape& tape, const Found& found, std::span<const ValueId> watched,
                          const Stopwatch& planning, int thread_count, const RunOptions& options,
                          std::uint32_t round) {
  const double planning_seconds = planning.seconds();
  const bool is_watched = watch != nullptr && !watched.empty();
  if (is_watched) watch->begin();
  const Stopwatch running;
  Executor& executor = executor_for(tape, found);
  std::function<void(std::uint32_t)> after_step;
  if (is_watched) after_step = WatchedRun(*watch, tape, executor, watched);
  const Executor::Memory within = memory.get(executor, options);
  tbb::task_arena& workers = thread_arena(thread_count);
  take_values(tape, executor, within.arena);
  try {
    workers.execute([&] {
      executor.run(tape, within,
                   {.threads = thread_count,
                    .anomaly = options.anomaly,
                    .profile = options.profile,
                    .round = round,
                    .after_step = is_watched ? &after_step : nullptr});
    });
  } catch (...) {
    give_back(tape, executor);
    throw;
  }
  give_results(tape, executor);
  const double run_seconds = running.seconds();
  PlanStore::Entry& entry = *found.entry;
  entry.run_seconds += run_seconds;
  Report report = report_of(tape, entry.plan, executor, thread_count, options.profile);
  report.budget = options.memory_budget;
  report.memory = options.memory;
  report.predicted_peak = memory.predicted_peak();
  report.plan_reused = entry.reused;
  report.plan_improvements = entry.improvements;
  report.plan_cache = lowered.bytes() + plans.bytes() + steps.bytes();
  report.planning_seconds = planning_seconds;
  report.run_seconds = run_seconds;
  return report;
}

std::optional<Report> Engine::State::evaluate(Tape& tape, std::span<const ValueId> targets,
                                              NodeId backward_begins, const RunOptions& options,
                                              std::optional<Bytes>& chosen) {
  const std::vector<NodeId> held = nodes_held_elsewhere(tape);
  settle_present(tape, held, memory.meter(), options.memory_budget != unlimited);
  const int thread_count = checked_threads(options.threads);
  const Stopwatch planning;
  const LoweredStore::Request request{targets,      backward_begins, held,
                                      thread_count, options.machine, options.costs.get()};
  const LentRoom lent(room, tape, request, options);
  const auto program = lowered.find_or_make(tape, request);
  const Found found = find(*program, tape, request, options);
  if (takes_free_memory(options)) {
    chosen = free_budget(found.entry->plan.predicted_peak(), program->free_budget());
    if (chosen) return {};
    program->free_budget().reset();
  }
  if (chosen) program->free_budget() = chosen;
  const bool has_backward = backward_begins < tape.node_count();
  Report report = run(tape, found, has_backward ? targets : std::span<const ValueId>(), planning,
                      thread_count, options);
  collected.note_run(report, tape, *found.lowered, found.entry->plan, backward_begins);
  report.loops = reports_of(room.loops(), executor_for(tape, found).notes());
  report.keep_all_peak += room.withheld();
  return report;
}

Report Engine::State::evaluate_all(Tape& tape, std::span<const ValueId> targets,
                                   NodeId backward_begins, const RunOptions& options) {
  std::optional<Bytes> chosen;
  if (auto report = evaluate(tape, targets, backward_begins, options, chosen)) return *report;
  RunOptions within = options;
  within.memory_budget = *chosen;
  return *evaluate(tape, targets, backward_begins, within, chosen);
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
  if (no_cache == std::pair(tape.node_count(), options.memory_budget) &&
      options.memory_budget != unlimited) {
    results.reset();
    return evaluate_or_let_go(tape, targets, backward_begins, options);
  }
  if (!results) results.emplace(memory.meter());
  std::vector<ValueId> wanted(targets.begin(), targets.end());
  try {
    results->begin(tape, wanted);
  } catch (...) {  // out of memory, half-way from one tape to the next
    results->abandon(tape);
    results.reset();
    throw;
  }
  const Bytes kept = results->taken();
  RunOptions within = options;
  if (options.memory_budget != unlimited) {
    within.memory_budget = std::max<Bytes>(0, options.memory_budget - kept);
  }
  try {
    Report report = evaluate_all(tape, wanted, backward_begins, within);
    results->end(tape);
    report.cached = results->used();
    report.cached_bytes = results->bytes();
    for (Bytes* peak : {&report.predicted_peak, &report.measured_peak, &report.predicted_live_peak,
                        &report.measured_live_peak, &report.keep_all_peak}) {
      *peak += kept;
    }
    if (report.budget != unlimited) report.budget += kept;
    return report;
  } catch (const BudgetError&) {
    results->abandon(tape);
  } catch (...) {
    results->abandon(tape);
    throw;
  }
  results.reset();
  no_cache = {tape.node_count(), options.memory_budget};
  return evaluate_or_let_go(tape, targets, backward_begins, options);
}

Engine::Engine() : state_(std::make_unique<State>()) {}
Engine::~Engine() = default;

const Meter& Engine::meter() const { return state_->memory.meter(); }
std::uint64_t Engine::plans_made() const { return state_->programs_planned; }

Plan Engine::plan(Tape& tape, std::span<const ValueId> targets, NodeId backward_begins,
                  const RunOptions& options) {
  return state_->plan(tape, targets, backward_begins, options,
                      [](const Planned& planned, const auto&) { return planned.plan; });
}

Graph Engine::graph(Tape& tape, std::span<const ValueId> targets, NodeId backward_begins,
                    const RunOptions& options) {
  const auto graph_within = [&](const RunOptions& within) {
    return state_->plan(
        tape, targets, backward_begins, within,
        [](const Planned& planned, const auto&) { return planned.lowered->graph(); }, true);
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
  const auto use = [&](const Planned& planned, LoweredStore::Request request) {
    request.machine = rates.machine;
    request.costs = rates.costs.get();
    LoweredStore store;
    const auto priced = store.find_or_make(tape, request)->get(tape, request, planned.form);
    Executor executor(std::make_shared<const Instructions>(tape, planned.lowered, planned.plan));
    const double seconds = seconds_of_run(priced->graph(), planned.plan, request.threads,
                                          rates.machine, rates.costs != nullptr);
    RunOptions within = options;
    within.memory_budget = planned.plan.budget;
    return Forecast{planned.plan, RunMemory::peak_of(executor, within), seconds};
  };
  return state_->plan(tape, targets, backward_begins, options, use);
}

Report Engine::evaluate(Tape& tape, std::span<const ValueId> targets, const RunOptions& options) {
  return evaluate(tape, targets, tape.node_count(), options);
}

Report Engine::evaluate(Tape& tape, std::span<const ValueId> targets, NodeId backward_begins,
                        const RunOptions& options) {
  check(options);
  if (options.memory == MemoryHandling::cached) {
    return state_->evaluate_cached(tape, targets, backward_begins, options);
  }
  state_->results.reset();  // which would take memory beside the run
  return state_->evaluate_or_let_go(tape, targets, backward_begins, options);
}

std::optional<Engine::Repeated> Engine::repeat(Tape& tape, ValueId loss,
                                               const RunOptions& options) {
  check(options);
  if (options.memory == MemoryHandling::cached) return {};  // which run differs from the one before
  const Stopwatch planning;
  KnownSteps::Step* const step = state_->steps.find(tape, loss);
  if (step == nullptr) return {};
  state_->results.reset();
  Tape& known = step->tape;
  tape.drop(loss);  // which the run makes again
  const LentToStep lent(*step, tape);
  const int threads = checked_threads(options.threads);
  const LoweredStore::Request request{
      step->targets,      step->recorded.backward_begins, {}, threads, options.machine,
      options.costs.get()};
  const std::uint64_t costs = options.costs != nullptr ? options.costs->hash() : 0;
  if (step->program == nullptr || step->threads != threads || step->machine != options.machine ||
      step->costs != costs) {
    step->program = state_->lowered.find_or_make(known, request);
    step->threads = threads;
    step->machine = options.machine;
    step->costs = costs;
  }
  RunOptions within = options;
  if (takes_free_memory(options)) {
    within.memory_budget = step->program->free_budget().value_or(unlimited);
  }
  Found found = state_->find(*step->program, known, request, within);
  if (takes_free_memory(within)) {
    if (const auto chosen = state_->free_budget(found.entry->plan.predicted_peak())) {
      step->program->free_budget() = chosen;
      within.memory_budget = *chosen;
      found = state_->find(*step->program, known, request, within);
    }
  }
  Repeated repeated{state_->run(known, found, step->targets, planning, threads, within,
                                tape.generation() - known.generation()),
                    {}};
  state_->collected.note_run(repeated.report, known, *found.lowered, found.entry->plan,
                             step->recorded.backward_begins);
  for (const ValueId gradient : step->recorded.gradients) {
    repeated.gradients.push_back(known.value(gradient));
  }
  if (!tape.has_value(loss)) tape.set_buffer(loss, known.buffer(loss));
  return repeated;
}

void Engine::remember(const Tape& tape, const Differentiated& recorded) {
  state_->steps.add(tape, recorded);
}

int Engine::threads(const RunOptions& options) { return checked_threads(options.threads); }

void Engine::set_free_memory(FreeMemory free) { state_->free = std::move(free); }

void Engine::set_watch(RunWatch* watch) { state_->watch = watch; }

void Engine::release_arena() {
  state_->memory.give_up();
  state_->results.reset();
}

void Engine::share_arena() { state_->memory.share_arena(); }

void Engine::collect() { state_->collected.begin(); }

void Engine::add_collected(const Report& run) { state_->collected.add(run); }

Report Engine::take_collected() { return state_->collected.take(); }

void Engine::compute_now(Tape& tape, NodeId node, const RunOptions& options) {
  const int threads = checked_threads(options.threads);
  const Meter& meter = state_->memory.meter();
  Report run;
  const auto allocate = [&](Bytes bytes) {
    ++run.allocations;
    return meter.allocate(bytes);
  };
  const Stopwatch running;
  state_->thread_arena(threads).execute(
      [&] { execute_on_tape(tape, node, allocate, options.anomaly); });
  if (!state_->collected.has_begun() || tape.operation(node).view) return;
  const double seconds = seconds_of(NodeView(tape, node), options.machine);
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
