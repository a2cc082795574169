#pragma once

#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "strategy/compile/kept_plannings.h"
#include "strategy/run/executor.h"

namespace palimpsest {

/// The plans of an engine, found again by the structure of their graphs, and improved while they
/// serve: looking for a better plan takes about a tenth of the seconds spent running it, in
/// rounds, until several in a row find nothing. Where planning takes longer than a tenth of a run,
/// a hurried plan serves first (see `Planner::hurried`), and the whole of planning is the first
/// such round. Not where planning takes no longer than what the hurried plan recomputes; and for
/// graphs of up to 83 nodes the planner itself is in a hurry, over layouts alone, so that a larger
/// budget never costs more.
/// A plan made for one budget is a candidate for every other budget. Kept are 16 plans at most, and
/// `most_cached` bytes unless the last four take more; and as many budgets that were refused. The
/// proposals for the last few graphs are kept for other budgets where they take little.
class PlanStore {
 public:
  struct Entry {
    std::uint64_t hash;  ///< of the graph's structure
    std::string key;     ///< of the planner
    PlannerPtr planner;
    Bytes budget;
    std::shared_ptr<const Graph> graph;
    Plan plan;
    std::shared_ptr<Executor> executor = {};  ///< once the plan has been run
    bool reused = false;
    bool hurried = false;
    std::uint32_t improvements = 0;
    double run_seconds = 0;  ///< for which the plan has served; whoever runs it adds to it

    // Of looking for a better plan.
    double planning_seconds = 0;
    double next_seconds = 0.01;  ///< of the next round
    std::uint64_t rounds = 0;
    int vain = 0;  ///< rounds since the last that found one
  };

  /// What is to be planned.
  struct Request {
    const std::shared_ptr<const Graph>& graph;
    const PlannerPtr& planner;
    Bytes budget;
  };

  /// The plan made before, soonest for the very graph that it was made for, and better by now where
  /// it has served for long enough; null when there is none. Like what the others
  /// return, it is there until four plans have been made since.
  Entry* find(const Request& request);
  /// True where planning in full would take too long for a first run.
  static bool is_in_a_hurry(const Request& request);
  /// A hurried plan, made now; null where there is no hurry, where none fits, and where
  /// it would recompute for longer than planning takes.
  Entry* hurry(const Request& request);
  /// The plan of the planner itself, made now.
  /// Throws what `make_plan` throws, at once when it did so before and no plan made since fits.
  Entry& make(const Request& request);

  /// Bytes that are kept, about.
  Bytes bytes() const;
  /// Graphs planned so far.
  std::uint64_t made() const { return made_; }

 private:
  /// A budget that was refused.
  struct Refusal {
    std::shared_ptr<const Graph> graph;
    std::string key;  ///< of the planner, or of the planner in a hurry
    Bytes budget;
    std::optional<BudgetError> error;  ///< none in a hurry
  };
  /// The entry that a request asks for, and those for other budgets.
  struct Match {
    std::list<Entry>::iterator same;
    std::vector<const Entry*> others;
  };

  static Bytes bytes_of_entry(const Entry& entry);
  static Bytes bytes_of_refusal(const Refusal& refusal);
  Match match(const Request& request);
  static std::vector<Proposal> schedules_of(std::span<const Entry* const> entries);
  Entry& insert(const Request& request, Plan plan);
  /// Null when something has been found since that fits.
  const Refusal* refusal(const Request& request, const std::string& key,
                         std::span<const Entry* const> others) const;
  void refuse(Refusal refusal);

  /// Takes `plan` when it fits and costs less, or as much; returns the seconds saved.
  static double adopt(Entry& entry, Plan plan, bool if_equal = false);
  static void improve(Entry& entry);
  static void continue_search(Entry& entry);
  /// Plans again and adopts the result; returns the seconds saved.
  static double look(Entry& entry, const Planner& planner, bool if_equal = false);

  std::list<Entry> entries_;  // most recently used first
  std::list<Refusal> refusals_;
  KeptPlannings plannings_{4_MiB};
  std::uint64_t made_ = 0;
};

}  // namespace palimpsest
