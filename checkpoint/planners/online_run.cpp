#include "checkpoint/planners/online_run.h"

#include <limits>

#include "checkpoint/online_eviction.h"
#include "checkpoint/planning_stop.h"
#include "checkpoint/schedule.h"

namespace palimpsest {

namespace {

/// One walk over the needed nodes as an eager tape with a budget would compute them.
class Run final : private OnlineEviction::Host {
 public:
  Run(const Graph& graph, Bytes budget, std::size_t most_steps)
      : graph_(graph),
        eviction_(graph, budget, *this),
        last_read_(graph.value_count()),
        most_steps_(most_steps) {
    const std::vector<NodeId> needed = graph.needed_nodes();
    for (std::size_t at = 0; at < needed.size(); ++at) {
      for (const ValueId input : graph.inputs(needed[at])) last_read_[graph.storage(input)] = at;
    }
    for (const ValueId target : graph.targets()) last_read_[graph.storage(target)] = never;
    fits_ = compute_all(needed);
  }

  bool fits() const { return fits_; }
  std::size_t steps() const { return order_.size(); }
  Bytes peak() const { return eviction_.peak(); }
  Schedule schedule() const { return drop_after_last_use(graph_, order_); }

 private:
  static constexpr std::size_t never = std::numeric_limits<std::size_t>::max();
  struct Thrashing {};

  bool compute_all(std::span<const NodeId> needed) {
    for (ValueId value = 0; value < graph_.value_count(); ++value) {
      if (graph_.is_present(value)) eviction_.set_live(value);
    }
    try {
      for (std::size_t at = 0; at < needed.size(); ++at) {
        PlanningStop::check();
        if (eviction_.compute(needed[at])) return false;
        const auto release = [&](ValueId value) {
          const ValueId root = graph_.storage(value);
          if (last_read_[root] <= at) eviction_.release(root);
        };
        for (const ValueId input : graph_.inputs(needed[at])) release(input);
        for (std::uint32_t i = 0; i < graph_.output_count(needed[at]); ++i) {
          release(graph_.first_output(needed[at]) + i);
        }
      }
      return !eviction_.require(graph_.targets());
    } catch (const Thrashing&) {
      return false;
    }
  }

  void compute(NodeId node) override {
    if (order_.size() == most_steps_) throw Thrashing();
    order_.push_back(node);
  }
  void drop(ValueId) override {}

  const Graph& graph_;
  OnlineEviction eviction_;
  std::vector<std::size_t> last_read_;  // by root: position among the needed nodes
  std::vector<NodeId> order_;
  std::size_t most_steps_;
  bool fits_ = false;
};

}  // namespace

OnlineRun run_online(const Graph& graph, Bytes budget, std::size_t most_steps) {
  const Run run(graph, budget, most_steps);
  OnlineRun result{.steps = run.steps(), .peak = run.peak(), .schedule = {}};
  if (run.fits()) result.schedule = run.schedule();
  return result;
}

}  // namespace palimpsest
