#pragma once

#include <list>
#include <memory>
#include <string>

#include "checkpoint/planner.h"
#include "checkpoint/planners/planning.h"

namespace palimpsest {

/// Keeps the plannings of recently planned graphs, for planning them within other budgets. A
/// planner that ignores the budget then runs only once.
class KeptPlannings {
 public:
  /// Keeps at most about `most_bytes`, counting graphs and proposals.
  explicit KeptPlannings(Bytes most_bytes) : most_bytes_(most_bytes) {}

  /// Calls `plan` with the planning of a graph, or of an equal one, and returns its result.
  template <class P>
  auto with(const std::shared_ptr<const Graph>& graph, const PlannerPtr& planner, P plan) {
    struct LetGo {
      KeptPlannings& plannings;
      ~LetGo() { plannings.let_go(); }
    };
    Planning& planning = find_or_add(graph, planner);
    const LetGo after{*this};
    return plan(planning);
  }
  /// Approximate bytes kept.
  Bytes bytes() const;
  void clear() { kept_.clear(); }

 private:
  struct Kept {
    std::shared_ptr<const Graph> graph;
    std::uint64_t hash;
    PlannerPtr planner;
    std::string key;  ///< of the planner
    Planning planning;
  };

  static Bytes bytes_of(const Kept& kept);
  /// Finds or adds a planning and moves it to the front.
  Planning& find_or_add(const std::shared_ptr<const Graph>& graph, const PlannerPtr& planner);
  /// Drops the front entry if its planning is empty. Then drops entries from the back until the
  /// limit holds.
  void let_go();

  std::list<Kept> kept_;  // most recently used first
  Bytes most_bytes_;
};

}  // namespace palimpsest
