#include "strategy/loops/step_programs.h"

#include <utility>

#include "checkpoint/tape_graph.h"
#include "strategy/base/cache_limit.h"
#include "strategy/loops/loop_budgets.h"
#include "strategy/loops/loop_operation.h"

namespace palimpsest {
namespace {

/// Enough for the budgets that a search asks for.
constexpr std::size_t most_programs = 1024;

}  // namespace

StepPrograms::StepPrograms(std::shared_ptr<Tape> tape, std::shared_ptr<std::mutex> mutex,
                           BufferInterface interface)
    : tape_(std::move(tape)),
      mutex_(std::move(mutex)),
      interface_(std::move(interface)),
      programs_(BufferPrograms::Match::tape, most_programs, most_cached) {
  const std::lock_guard lock(*mutex_);
  // The last plan left budgets to the loops of the step. Costs must not depend on them.
  take_state_budgets(*tape_);
  const Graph graph = graph_of(*tape_, interface_.results);
  for (const NodeId node : graph.needed_nodes()) {
    const Cost cost = cost_of(NodeView(tape_->nodes(), node));
    cost_.flops += cost.flops;
    cost_.bytes += cost.bytes;
  }
}

Cost StepPrograms::cost(Bytes budget) const {
  if (budget == unlimited) return cost_;
  BufferProgramPtr program;
  {
    const std::lock_guard lock(*mutex_);
    program = programs_.find_for(budget);
    if (program == nullptr && last_.budget == budget) program = last_.program;
  }
  if (program == nullptr) program = get(1, budget);
  const double runs = 1 + program->plan().compute_overhead();
  return {cost_.flops * runs, cost_.bytes * runs};
}

OrRefusal<BufferProgramPtr> StepPrograms::find_or_compile(int threads, Bytes budget) const {
  LoopBudgets loops(LoopBudgets::Keeps::states);
  return programs_.find_or_compile(tape_, interface_, {.memory_budget = budget, .threads = threads},
                                   loops);
}

BufferProgramPtr StepPrograms::get(int threads, Bytes budget) const {
  const std::lock_guard lock(*mutex_);
  if (last_.program == nullptr || last_.threads != threads || last_.budget != budget) {
    last_ = {threads, budget, find_or_compile(threads, budget).take()};
  }
  return last_.program;
}

BufferProgramPtr StepPrograms::looking_for_anomalies(int threads) const {
  const std::lock_guard lock(*mutex_);
  LoopBudgets loops(LoopBudgets::Keeps::states);
  return compile_for_buffers(tape_, interface_, {.threads = threads, .anomaly = true}, loops)
      .take();
}

Bytes StepPrograms::smallest(int threads) const {
  const Bytes most = get(threads)->workspace();
  if (most == 0) return 0;
  const std::lock_guard lock(*mutex_);
  const OrRefusal<BufferProgramPtr> least = find_or_compile(threads, 0);
  return least ? (*least)->workspace() : least.refusal().smallest_feasible();
}

BufferInterface program_of(const RecordedStep& step, bool with_outputs) {
  BufferInterface wanted{step.arguments(), step.next, step.tape->node_count()};
  if (with_outputs) {
    wanted.results.insert(wanted.results.end(), step.outputs.begin(), step.outputs.end());
  }
  return wanted;
}

BufferInterface program_of_outputs(const RecordedStep& step) {
  return {step.arguments(), step.outputs, step.tape->node_count()};
}

}  // namespace palimpsest
