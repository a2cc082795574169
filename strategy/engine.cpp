#include "strategy/engine.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "autodiff/execute.h"
#include "autodiff/kernels/kernels.h"
#include "checkpoint/arena.h"
#include "checkpoint/planners.h"
#include "checkpoint/tape_graph.h"
#include "strategy/executor.h"
#include "strategy/fusion/lowered_store.h"
#include "strategy/plan_store.h"
#include "strategy/present.h"

namespace palimpsest {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

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
  // A search before the first run would not pay when it is the only one.
  static const PlannerPtr standard = automatic({.moves = 0});
  return options.planner != nullptr ? options.planner : standard;
}

bool may_fuse(const RunOptions& options) {
  return options.fuse && !options.anomaly && !planner_of(options)->names_nodes();
}

std::shared_ptr<const Graph> graph_in(const std::shared_ptr<const Lowered>& lowered) {
  return {lowered, &lowered->graph()};
}

/// What a program is run by.
struct Found {
  std::shared_ptr<const Lowered> lowered;
  PlanStore::Entry* entry;
};

double cost(const Plan& plan) { return plan.simulation.cost; }
double cost(const Found& found) { return cost(found.entry->ready.plan); }

/// True when single nodes cannot cost less than what was found for groups.
template <class T, class C>
bool suffices(const T& together, const RunOptions& options, C one_pass_cost) {
  return options.memory_budget == unlimited || cost(together) <= one_pass_cost();
}

/// What `plan(fuse)` finds for a program with its elementwise nodes in groups or, where that is not
/// allowed, as it was recorded. Groups hold all they make at once: where they do not fit the
/// budget, or cost more than one pass of single nodes, both are planned, and what costs less is
/// taken, so that a larger budget never costs more.
template <class P, class C>
auto planned(const RunOptions& options, P plan, C one_pass_cost) {
  if (!may_fuse(options)) return plan(false);
  std::optional<decltype(plan(true))> together;
  std::optional<BudgetError> refused;
  try {
    together.emplace(plan(true));
  } catch (const BudgetError& error) {
    refused = error;
  }
  if (together && suffices(*together, options, one_pass_cost)) return *together;
  try {
    auto apart = plan(false);
    return together && cost(*together) <= cost(apart) ? *together : apart;
  } catch (const BudgetError& error) {
    if (together) return *together;
    throw refused->smallest_feasible() < error.smallest_feasible() ? *refused : error;
  }
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
  LoweredStore lowered;
  PlanStore plans;
  std::uint64_t programs_planned = 0;  // that some plan was made for
  std::optional<tbb::task_arena> threads;

  Found find(const Tape& tape, const LoweredStore::Request& request, const RunOptions& options);

  tbb::task_arena& thread_arena(int count) {
    if (!threads || threads->max_concurrency() != count) threads.emplace(count);
    return *threads;
  }

  /// An arena for `plan` that nobody holds a part of: the last one when it has the size and is
  /// free.
  const Arena& arena_for(const PlanStore::Ready& ready) {
    const Bytes size = ready.plan.layout.size;
    if (arena.size() != size || arena.in_use()) give_arena_up();
    if (arena.size() == 0) arena = Arena(meter, size);
    held = ready.results;
    return arena;
  }

  /// The last run's targets that are still held keep their pages, the rest is given back.
  void give_arena_up() {
    if (arena.size() > 0) arena.release_except(held);
  }
};

Found Engine::State::find(const Tape& tape, const LoweredStore::Request& request,
                          const RunOptions& options) {
  LoweredStore::Program& program = lowered.find_or_make(tape, request);
  const std::uint64_t made = plans.made();
  bool known = false;
  const auto attempt = [&](bool fuse, bool hurried) -> std::optional<Found> {
    const std::shared_ptr<const Lowered>& form = program.get(tape, request, fuse);
    const std::shared_ptr<const Graph> graph = graph_in(form);
    const PlanStore::Request wanted{graph, planner_of(options), options.memory_budget};
    PlanStore::Entry* entry = plans.find(wanted);
    known = known || entry != nullptr;
    if (entry == nullptr) entry = hurried ? plans.hurry(wanted) : &plans.make(wanted);
    if (entry == nullptr) return {};
    return Found{form, entry};
  };
  const auto one_pass_cost = [&] { return program.get(tape, request, false)->one_pass_cost(); };
  const Found found = [&] {
    std::optional<Found> together;
    if (may_fuse(options)) together = attempt(true, true);
    if (together && together->entry->hurried) return *together;
    if (together && suffices(*together, options, one_pass_cost)) return *together;
    const std::optional<Found> apart = attempt(false, true);
    if (apart && together) return cost(*together) <= cost(*apart) ? *together : *apart;
    if (apart && apart->entry->hurried) return *apart;
    return planned(options, [&](bool fuse) { return *attempt(fuse, false); }, one_pass_cost);
  }();
  if (!known && plans.made() > made) ++programs_planned;
  return found;
}

Engine::Engine() : state_(std::make_unique<State>()) {}
Engine::~Engine() = default;

const Meter& Engine::meter() const { return state_->meter; }
std::uint64_t Engine::plans_made() const { return state_->programs_planned; }

Plan Engine::plan(const Tape& tape, std::span<const ValueId> targets, NodeId backward_begins,
                  const RunOptions& options) {
  check(options);
  const int threads = checked_threads(options.threads);
  const std::vector<NodeId> held = nodes_held_elsewhere(tape);
  const LoweredStore::Request request{targets, backward_begins, held, threads};
  LoweredStore store;
  LoweredStore::Program& program = store.find_or_make(tape, request);
  const auto form = [&](bool fuse) { return program.get(tape, request, fuse); };
  return planned(
      options,
      [&](bool fuse) {
        return make_plan(form(fuse)->graph(), *planner_of(options), options.memory_budget);
      },
      [&] { return form(false)->one_pass_cost(); });
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

void fill(Report& report, const Tape& tape, const Lowered& lowered, const PlanStore::Entry& entry,
          std::span<const Event> events) {
  const Plan& plan = entry.ready.plan;
  report.plan_reused = entry.reused;
  report.plan_improvements = entry.improvements;
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
  std::vector<bool> seen(lowered.graph().node_count());
  report.steps.reserve(events.size());
  for (const Event& event : events) {
    const NodeId node = lowered.node(event.node);
    std::string name(tape.scope_of(node));
    if (!name.empty() && !tape.name(node).empty()) name += '/';
    name += tape.name(node);
    const std::string_view operation = lowered.program(event.node) != nullptr
                                           ? lowered.graph().name(event.node)
                                           : tape.operation(node).name;
    report.steps.push_back({std::string(operation), std::move(name), event, seen[event.node]});
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
  const Found found = state_->find(tape, {targets, backward_begins, held, report.threads}, options);
  PlanStore::Entry& entry = *found.entry;
  const Lowered& lowered = *found.lowered;
  report.planning_seconds = seconds_since(planning);

  const Plan& plan = entry.ready.plan;
  // Values that are present have a place in the layout too. A few are copied there; with many, an
  // arena of the layout's size beside them would be too much, and each value gets its own storage.
  const Bytes present = present_bytes(lowered.graph());
  const bool in_arena = plan.layout.size > 0 && present <= plan.layout.size / 16;
  const Arena* arena = in_arena ? &state_->arena_for(entry.ready) : nullptr;
  if (!in_arena) state_->give_arena_up();

  const Clock::time_point running = Clock::now();
  Executor executor(tape, lowered, plan, entry.ready.program, state_->meter, arena);
  state_->thread_arena(report.threads).execute([&] {
    executor.run(report.threads, options.anomaly);
  });
  report.run_seconds = seconds_since(running);
  entry.run_seconds += report.run_seconds;
  report.measured_peak = executor.peak_reserved();
  report.measured_live_peak = executor.peak_live();
  fill(report, tape, lowered, entry, executor.events());
  return report;
}

int Engine::threads(const RunOptions& options) { return checked_threads(options.threads); }

void Engine::release_arena() { state_->give_arena_up(); }

void Engine::compute_now(Tape& tape, NodeId node, const RunOptions& options) {
  const int threads = checked_threads(options.threads);
  state_->thread_arena(threads).execute([&] {
    execute_on_tape(
        tape, node, [&](Bytes bytes) { return state_->meter.allocate(bytes); }, options.anomaly);
  });
}

}  // namespace palimpsest
