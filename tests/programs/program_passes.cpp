#include "tests/programs/program_passes.h"

#include <cmath>
#include <limits>

#include "checkpoint/planners/planning.h"
#include "strategy/compile/buffer_programs.h"
#include "strategy/compile/fusion/needs.h"
#include "strategy/compile/fusion/verify_lowered.h"
#include "strategy/compile/lowered_forms.h"
#include "strategy/compile/verify_plan.h"
#include "tests/fused_peaks.h"
#include "tests/temporary_directory.h"

namespace palimpsest {
namespace {

/// A program with its gradients.
struct WithGradients {
  explicit WithGradients(const ProgramText& text) {
    const ComposedProgram program = compose(tape, text);
    backward_begins = tape.node_count();
    targets.push_back(program.loss.id());
    for (const Var& each : gradient(program.loss, program.parameters)) targets.push_back(each.id());
  }
  ProgramSpec spec() const { return {targets, backward_begins, {}, 3}; }

  Tape tape;
  std::vector<ValueId> targets;
  NodeId backward_begins = 0;
};

void verify_plan(const Tape& tape, const std::shared_ptr<const Lowered>& lowered,
                 const Plan& plan) {
  verify(lowered->graph(), plan);
  verify(Instructions(tape, lowered, plan), plan);
}

void verify_form(const Tape& tape, const ProgramSpec& spec,
                 const std::shared_ptr<const Lowered>& lowered, bool simplify) {
  const Simplification simplification =
      simplify ? Simplification(tape, Needs(tape, spec.targets, {}, false), spec.backward_begins)
               : Simplification();
  verify(*lowered, tape, spec.targets, simplification);
  const Graph& graph = lowered->graph();
  const Plan everything = make_plan(graph, *keep_all());
  verify_plan(tape, lowered, everything);
  const auto budget = static_cast<Bytes>(0.6 * static_cast<double>(everything.predicted_peak()));
  if (const auto plan = find_plan(graph, *quick(), budget)) verify_plan(tape, lowered, *plan);
}

/// Computes every other node of the forward part. Then verifies plans in which these values are
/// present and, if they do not fit the budget, recomputed.
void verify_present(Tape& tape, const ProgramSpec& spec) {
  std::vector<Var> computed;
  for (NodeId node = 0; node < spec.backward_begins; node += 2) {
    if (tape.operation(node).has_state_budget) continue;
    for (std::uint32_t i = 0; i < tape.output_count(node); ++i) {
      computed.emplace_back(tape, tape.first_output(node) + i);
    }
  }
  evaluate(computed);
  const auto lowered = LoweredForms(tape, spec).get(tape, spec, {false, false});
  const Graph& graph = lowered->graph();
  const auto all = static_cast<double>(make_plan(graph, *keep_all()).predicted_peak());
  for (const PlannerPtr& planner : {greedy(), quick(), search({.moves = 0}), min_cut()}) {
    Planning planning(graph, *planner);
    for (const double part : {0.3, 0.8}) {
      const auto plan = planning.find(static_cast<Bytes>(part * all));
      if (plan) verify_plan(tape, lowered, *plan);
    }
  }
}

}  // namespace

std::optional<std::string> broken_pass_in(const ProgramText& text) {
  try {
    WithGradients program(text);
    Tape& tape = program.tape;
    const ProgramSpec spec = program.spec();
    LoweredForms lowered(tape, spec);
    for (const bool fuse : {false, true}) {
      for (const bool simplify : {false, true}) {
        if (simplify && !lowered.is_simplified()) continue;
        verify_form(tape, spec, lowered.get(tape, spec, {fuse, simplify}), simplify);
      }
    }
    for (const bool simplify : {false, lowered.is_simplified()}) {
      const Lowered& fused = *lowered.get(tape, spec, {true, simplify});
      const Bytes single = keep_all_peak(*lowered.get(tape, spec, {false, simplify}));
      if (keep_all_peak(fused) > single + scratch_of(fused)) return "fusion takes more memory";
    }
    verify_present(tape, spec);
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

std::optional<std::string> dearer_within_more(const ProgramText& text) {
  const WithGradients program(text);
  const ProgramSpec spec = program.spec();
  const auto lowered = LoweredForms(program.tape, spec).get(program.tape, spec, {true, false});
  const Graph& graph = lowered->graph();
  const auto all = static_cast<double>(make_plan(graph, *keep_all()).predicted_peak());
  for (const PlannerPtr& planner : {greedy(), automatic({.moves = 0})}) {
    double least = std::numeric_limits<double>::infinity();
    Planning planning(graph, *planner);
    for (const double part : {0.3, 0.45, 0.5, 0.55, 0.6, 0.75, 0.9}) {
      const auto budget = static_cast<Bytes>(part * all);
      const auto plan = planning.find(budget);
      const double seconds = plan ? plan->simulation.cost : std::numeric_limits<double>::infinity();
      if (seconds > least * (1 + 1e-9)) {
        return "within " + std::to_string(budget) + " bytes '" + planner->name() +
               (plan ? "' has a dearer plan than within less"
                     : "' has no plan, and has within less");
      }
      least = seconds;
    }
  }
  constexpr NodeId planned_at_once = 83;  // see `few_nodes` in plan_improvement.cpp
  if (program.tape.node_count() > planned_at_once || holds_loops(program.tape)) return {};
  double least = std::numeric_limits<double>::infinity();
  // Others for each program. Each is planned anew, which takes a large part of the time of a check.
  const int first = 4 + static_cast<int>(text.seed % 3);
  for (int part = first; part < 20; part += 3) {
    const auto budget = static_cast<Bytes>(part * all / 20);
    Tape tape;
    try {
      const Gradients gradients =
          backward(compose(tape, text).loss, {.memory_budget = budget, .threads = 1});
      const double overhead = gradients.report().compute_overhead;
      if (overhead > least + 1e-9) {
        return "within " + std::to_string(budget) + " bytes backward computes " +
               std::to_string(overhead) + " again, within less " + std::to_string(least);
      }
      least = overhead;
    } catch (const BudgetError& error) {
      if (std::isfinite(least)) return error.what();
    }
  }
  return {};
}

std::optional<std::string> problem_through_files(const ProgramText& text, double share,
                                                 const Results& expected) {
  try {
    const TemporaryDirectory folder;
    const std::string graph_path = folder.path() + "/g.json";
    const std::string schedule_path = folder.path() + "/s.json";
    RunOptions options{.threads = 1};
    if (share < 1) {
      Tape tape;
      const Bytes everything = plan_backward(compose(tape, text).loss, options).predicted_peak();
      options.memory_budget = static_cast<Bytes>(share * static_cast<double>(everything));
    }
    bool loops = false;
    {
      Tape tape;
      const ComposedProgram program = compose(tape, text);
      if (program.reads_values) return {};  // schedules are for tapes that have computed nothing
      write_graph(program.loss, graph_path, options);
      loops = holds_loops(tape);
    }
    const Graph graph = read_graph(graph_path);
    const std::optional<Plan> found = find_plan(graph, *quick(), options.memory_budget);
    const Plan plan = found ? *found : make_plan(graph, *keep_all());
    write_schedule(plan.schedule, schedule_path);
    // Loops get a different amount of memory with another planner.
    if (!found || loops) options.memory_budget = unlimited;
    options.planner = given(read_schedule(schedule_path));
    Tape tape;
    const ComposedProgram program = compose(tape, text);
    const Gradients gradients = backward(program.loss, options);
    const std::string different = difference(results_of(gradients, program.parameters), expected);
    if (!different.empty()) return different;
    if (gradients.report().recomputed != plan.simulation.recomputed) {
      return "recomputed " + std::to_string(gradients.report().recomputed) + ", planned " +
             std::to_string(plan.simulation.recomputed);
    }
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace palimpsest
