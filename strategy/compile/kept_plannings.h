#pragma once

#include <list>
#include <memory>
#include <string>

#include "checkpoint/planner.h"
#include "checkpoint/planners/planning.h"

namespace palimpsest {

/// Plannings of the graphs that were planned last, for when these are planned for other budgets: a
/// planner that ignores the budget is then asked once.
class KeptPlannings {
 public:
  /// Keeps what takes so many bytes, graphs and proposals counted, about.
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
  /// Bytes that are kept, about.
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
  /// The planning that is then in front.
  Planning& find_or_add(const std::shared_ptr<const Graph>& graph, const PlannerPtr& planner);
  /// Drops the one in front if nothing is gained by keeping it, and the last that take too much.
  void let_go();

  std::list<Kept> kept_;  // most recently used first
  Bytes most_bytes_;
};

}  // namespace palimpsest
