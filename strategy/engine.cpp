#include "strategy/engine.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <list>
#include <optional>

#include "autodiff/execute.h"
#include "autodiff/kernels/kernels.h"
#include "checkpoint/arena.h"
#include "checkpoint/planners.h"
#include "checkpoint/tape_graph.h"
#include "strategy/executor.h"
#include "strategy/present.h"
#include "strategy/program.h"

namespace palimpsest {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Plans kept; enough for the handful of structures a program alternates between.
constexpr std::size_t most_cached_plans = 16;

/// Where the targets lie when the plan has been carried out.
std::vector<Arena::Range> places_of_targets(const Graph& graph, const Plan& plan) {
  std::vector<bool> wanted(graph.value_count());
  for (const ValueId target : graph.targets()) wanted[graph.storage(target)] = true;
  std::vector<Arena::Range> places;
  for (const Interval& interval : plan.layout.intervals) {
    if (interval.last + 1 < plan.schedule.steps.size()) continue;
    if (interval.storage == Interval::workspace || !wanted[interval.storage]) continue;
    places.push_back({interval.offset, interval.bytes});
  }
  return places;
}

struct CachedPlan {
  std::uint64_t hash;
  std::string planner;
  Bytes budget;
  Graph graph;
  Plan plan;
  Program program;
  std::vector<Arena::Range> results;  // places of the targets

  CachedPlan(std::uint64_t key, std::string name, Bytes bytes, Graph g, Plan p)
      : hash(key),
        planner(std::move(name)),
        budget(bytes),
        graph(std::move(g)),
        plan(std::move(p)),
        program(graph, plan),
        results(places_of_targets(graph, plan)) {}
};

int checked_threads(int threads) {
  if (threads < 0) {
    throw ArgumentError("[run] " + std::to_string(threads) +
                        " threads; give a positive number, or 0 for one per core");
  }
  // oneTBB prints a warning when an arena is larger than its workers can ever fill.
  const auto most = static_cast<int>(
      tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism));
  return threads > 0 ? std::min(threads, most) : most;
}

const PlannerPtr& planner_of(const RunOptions& options) {
  static const PlannerPtr standard = automatic();
  return options.planner != nullptr ? options.planner : standard;
}

void check(const RunOptions& options) {
  if (options.memory_budget < 0) {
    throw ArgumentError("[run] a memory budget of " + std::to_string(options.memory_budget) +
                        " bytes; give a positive number, as in 256_MiB");
  }
}

}  // namespace

struct Engine::State {
  Meter meter;
  Arena arena;
  std::vector<Arena::Range> held;  // of the arena: targets of the last run
  std::list<CachedPlan> plans;     // most recently used first
  std::uint64_t plans_made = 0;
  std::optional<tbb::task_arena> threads;

  tbb::task_arena& thread_arena(int count) {
    if (!threads || threads->max_concurrency() != count) threads.emplace(count);
    return *threads;
  }

  /// The plan for `graph`, from an earlier run of the same structure when there was one.
  CachedPlan& plan_for(Graph graph, const Planner& planner, Bytes budget, bool& reused) {
    const std::uint64_t hash = graph.structure_hash();
    const auto known = std::find_if(plans.begin(), plans.end(), [&](const CachedPlan& entry) {
      return entry.hash == hash && entry.budget == budget && entry.planner == planner.key() &&
             entry.graph == graph;
    });
    reused = known != plans.end();
    if (reused) {
      plans.splice(plans.begin(), plans, known);
      return plans.front();
    }
    Plan plan = make_plan(graph, planner, budget);
    ++plans_made;
    plans.emplace_front(hash, planner.key(), budget, std::move(graph), std::move(plan));
    if (plans.size() > most_cached_plans) plans.pop_back();
    return plans.front();
  }

  /// An arena for `plan` that nobody holds a part of: the last one when it has the size and is
  /// free.
  const Arena& arena_for(const CachedPlan& cached) {
    if (arena.size() != cached.plan.layout.size || arena.in_use()) give_arena_up();
    if (arena.size() == 0) arena = Arena(meter, cached.plan.layout.size);
    held = cached.results;
    return arena;
  }

  /// The last run's targets that are still held keep their pages, the rest is given back.
  void give_arena_up() {
    if (arena.size() > 0) arena.release_except(held);
  }
};

Engine::Engine() : state_(std::make_unique<State>()) {}
Engine::~Engine() = default;

const Meter& Engine::meter() const { return state_->meter; }
std::uint64_t Engine::plans_made() const { return state_->plans_made; }

Plan Engine::plan(const Tape& tape, std::span<const ValueId> targets, NodeId backward_begins,
                  const RunOptions& options) {
  check(options);
  const int threads = checked_threads(options.threads);
  const std::vector<NodeId> held = nodes_held_elsewhere(tape);
  return make_plan(graph_of(tape, targets, threads, backward_begins, {}, held),
                   *planner_of(options), options.memory_budget);
}

Report Engine::evaluate(Tape& tape, std::span<const ValueId> targets, const RunOptions& options) {
  return evaluate(tape, targets, tape.node_count(), options);
}

namespace {

/// Bytes of the values that are there before the run.
Bytes present_bytes(const Graph& graph) {
  std::vector<bool> counted(graph.value_count());
  Bytes bytes = 0;
  for (ValueId value = 0; value < graph.value_count(); ++value) {
    const ValueId root = graph.storage(value);
    if (!graph.is_present(value) || counted[root]) continue;
    counted[root] = true;
    bytes += graph.bytes(root);
  }
  return bytes;
}

void fill(Report& report, const Tape& tape, const CachedPlan& cached,
          std::span<const Event> events) {
  const Plan& plan = cached.plan;
  report.planner = plan.planner;
  report.summary = plan.summary();
  report.kernel_level = kernels().level;
  report.budget = plan.budget;
  report.keep_all_peak = plan.keep_all_peak;
  report.predicted_peak = plan.predicted_peak();
  report.predicted_live_peak = plan.simulation.peak;
  report.resident = resident_size();
  report.tape_metadata = tape.metadata_bytes();
  report.computed = plan.simulation.computed;
  report.recomputed = plan.simulation.recomputed;
  report.compute_overhead = plan.compute_overhead();
  std::vector<bool> seen(tape.node_count());
  report.steps.reserve(events.size());
  for (const Event& event : events) {
    std::string name(tape.scope_of(event.node));
    if (!name.empty() && !tape.name(event.node).empty()) name += '/';
    name += tape.name(event.node);
    report.steps.push_back(
        {std::string(tape.operation(event.node).name), std::move(name), event, seen[event.node]});
    report.kernel_seconds += static_cast<double>(event.end - event.start) * 1e-9;
    seen[event.node] = true;
  }
}

}  // namespace

Report Engine::evaluate(Tape& tape, std::span<const ValueId> targets, NodeId backward_begins,
                        const RunOptions& options) {
  check(options);
  const std::vector<NodeId> held = nodes_held_elsewhere(tape);
  settle_present(tape, held, state_->meter);
  Report report;
  report.threads = checked_threads(options.threads);
  const Clock::time_point planning = Clock::now();
  CachedPlan& cached =
      state_->plan_for(graph_of(tape, targets, report.threads, backward_begins, {}, held),
                       *planner_of(options), options.memory_budget, report.plan_reused);
  report.planning_seconds = seconds_since(planning);

  const Plan& plan = cached.plan;
  // Values that are present have a place in the layout too. A few are copied there; with many, an
  // arena of the layout's size beside them would be too much, and each value gets its own storage.
  const Bytes present = present_bytes(cached.graph);
  const bool in_arena = plan.layout.size > 0 && present <= plan.layout.size / 16;
  const Arena* arena = in_arena ? &state_->arena_for(cached) : nullptr;
  if (!in_arena) state_->give_arena_up();

  const Clock::time_point running = Clock::now();
  Executor executor(tape, cached.graph, plan, cached.program, state_->meter, arena);
  state_->thread_arena(report.threads).execute([&] {
    executor.run(report.threads, options.anomaly);
  });
  report.run_seconds = seconds_since(running);
  report.measured_peak = executor.peak_reserved();
  report.measured_live_peak = executor.peak_live();
  fill(report, tape, cached, executor.events());
  return report;
}

void Engine::compute_now(Tape& tape, NodeId node, const RunOptions& options) {
  const int threads = checked_threads(options.threads);
  state_->thread_arena(threads).execute([&] {
    execute_on_tape(
        tape, node, [&](Bytes bytes) { return state_->meter.allocate(bytes); }, options.anomaly);
  });
}

}  // namespace palimpsest
