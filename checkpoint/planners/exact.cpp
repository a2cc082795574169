#include "checkpoint/engine_planner.h"
#include "checkpoint/planners.h"
#include "checkpoint/planners/optimum.h"

namespace palimpsest {

namespace {

class Exact final : public EnginePlanner {
 public:
  explicit Exact(ExactSettings settings) : settings_(settings) {
    if (settings.most_sets > 0) return;
    throw ArgumentError("[exact] most_sets is 0; give 1 or more sets of live values to visit");
  }

  std::string name() const override { return "exact"; }
  std::string key() const override {
    return "exact " + std::to_string(settings_.most_sets) + (settings_.lay_out ? "" : " live");
  }
  bool accepts_keep_all() const override { return true; }

  std::vector<Proposal> propose(const Graph& graph, Bytes budget) const override {
    Optimum optimum(graph, settings_.most_sets);
    std::vector<Proposal> proposals;
    const bool fits = optimum.propose(budget, settings_.lay_out, proposals);
    if (proposals.empty() && !optimum.gave_up()) {
      proposals.emplace_back(optimum.lowest());
    } else if (settings_.lay_out && !proposals.empty() && !(fits && proposals.size() == 1)) {
      add_others(graph, budget, proposals);
      return proposals;
    }
    if (!optimum.gave_up()) return proposals;
    throw ArgumentError(
        "[exact] " + std::to_string(graph.needed_nodes().size()) +
        " nodes contribute to the targets, and their optimum is not among the first " +
        std::to_string(settings_.most_sets) +
        " sets of live values; raise most_sets, or use another planner such as auto");
  }

 private:
  /// Adds schedules whose layouts may be smaller than that of the optimum of live bytes.
  static void add_others(const Graph& graph, Bytes budget, std::vector<Proposal>& proposals) {
    const PlannerPtr others = automatic();
    for (Proposal& one : others->propose(graph, budget)) {
      if (one.planner.empty()) one.planner = others->name();
      proposals.push_back(std::move(one));
    }
  }

  ExactSettings settings_;
};

}  // namespace

PlannerPtr exact(ExactSettings settings) { return std::make_shared<Exact>(settings); }

}  // namespace palimpsest
