#include "strategy/engine.h"

#include <oneapi/tbb/task_arena.h>

#include <optional>

#include "autodiff/execute.h"
#include "strategy/forms.h"
#include "strategy/fusion/lowered_store.h"
#include "strategy/kept_arena.h"
#include "strategy/plan_store.h"
#include "strategy/present.h"
#include "strategy/report_of.h"
#include "strategy/stopwatch.h"
#include "strategy/tape_values.h"

namespace palimpsest {
namespace {

std::shared_ptr<const Graph> graph_in(const std::shared_ptr<const Lowered>& lowered) {
  return {lowered, &lowered->graph()};
}

/// What a program is run by.
struct Found {
  std::shared_ptr<const Lowered> lowered;
  PlanStore::Entry* entry;
};

double cost(const Found& found) { return found.entry->plan.simulation.cost; }

}  // namespace

struct Engine::State {
  Meter meter;
  KeptArena arena;
  LoweredStore lowered;
  PlanStore plans;
  std::uint64_t programs_planned = 0;  // that some plan was made for
  std::optional<tbb::task_arena> threads;

  Found find(const Tape& tape, const LoweredStore::Request& request, const RunOptions& options);

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
    if (together && suffices(*together, options, one_pass_cost)) return *together;
    const std::optional<Found> apart = attempt(false, true);
    if (apart && together) return cost(*together) <= cost(*apart) ? *together : *apart;
    // What was found in a hurry serves until there is time for the other form.
    if (together && together->entry->hurried) return *together;
    if (apart && apart->entry->hurried) return *apart;
    return plan_either_form(
        options, [&](bool fuse) { return *attempt(fuse, false); }, one_pass_cost);
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
  return plan_tape(tape, {targets, backward_begins, held, threads}, options).plan;
}

Report Engine::evaluate(Tape& tape, std::span<const ValueId> targets, const RunOptions& options) {
  return evaluate(tape, targets, tape.node_count(), options);
}

Report Engine::evaluate(Tape& tape, std::span<const ValueId> targets, NodeId backward_begins,
                        const RunOptions& options) {
  check(options);
  const std::vector<NodeId> held = nodes_held_elsewhere(tape);
  settle_present(tape, held, state_->meter);
  const int threads = checked_threads(options.threads);
  const Stopwatch planning;
  const Found found = state_->find(tape, {targets, backward_begins, held, threads}, options);
  const double planning_seconds = planning.seconds();

  const Stopwatch running;
  Executor& executor = state_->executor_for(tape, found);
  const Arena* arena = state_->arena.get(executor.instructions(), state_->meter);
  tbb::task_arena& thread_arena = state_->thread_arena(threads);
  take_values(tape, executor, arena);
  try {
    thread_arena.execute([&] {
      executor.run(tape, state_->meter, arena, {threads, options.anomaly, options.profile, 0});
    });
  } catch (...) {
    give_back(tape, executor);
    throw;
  }
  give_results(tape, executor);
  const double run_seconds = running.seconds();
  PlanStore::Entry& entry = *found.entry;
  entry.run_seconds += run_seconds;
  Report report = report_of(tape, entry.plan, executor, threads, options.profile);
  report.plan_reused = entry.reused;
  report.plan_improvements = entry.improvements;
  report.planning_seconds = planning_seconds;
  report.run_seconds = run_seconds;
  return report;
}

int Engine::threads(const RunOptions& options) { return checked_threads(options.threads); }

void Engine::release_arena() { state_->arena.give_up(); }

void Engine::compute_now(Tape& tape, NodeId node, const RunOptions& options) {
  const int threads = checked_threads(options.threads);
  state_->thread_arena(threads).execute([&] {
    execute_on_tape(
        tape, node, [&](Bytes bytes) { return state_->meter.allocate(bytes); }, options.anomaly);
  });
}

}  // namespace palimpsest
