#include <algorithm>
#include <limits>

#include "checkpoint/layout.h"
#include "checkpoint/liveness.h"
#include "checkpoint/online_eviction.h"
#include "checkpoint/planners.h"

namespace palimpsest {

namespace {

/// One walk over the needed nodes as an eager tape with a budget would compute them.
class Recording final : private OnlineEviction::Host {
 public:
  Recording(const Graph& graph, Bytes budget)
      : graph_(graph), eviction_(graph, budget, *this), last_read_(graph.value_count()) {
    const std::vector<NodeId> needed = graph.needed_nodes();
    for (std::size_t at = 0; at < needed.size(); ++at) {
      for (const ValueId input : graph.inputs(needed[at])) last_read_[graph.storage(input)] = at;
    }
    for (const ValueId target : graph.targets()) last_read_[graph.storage(target)] = never;
    most_steps_ = 16 * needed.size() + 64;
    fits_ = run(needed);
  }

  bool fits() const { return fits_; }
  Bytes peak() const { return eviction_.peak(); }
  Schedule schedule() const { return drop_after_last_use(graph_, order_); }

 private:
  static constexpr std::size_t never = std::numeric_limits<std::size_t>::max();
  struct Thrashing {};

  bool run(std::span<const NodeId> needed) {
    for (ValueId value = 0; value < graph_.value_count(); ++value) {
      if (graph_.is_present(value)) eviction_.set_live(value);
    }
    try {
      for (std::size_t at = 0; at < needed.size(); ++at) {
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
  std::size_t most_steps_ = 0;
  bool fits_ = false;
};

class Online final : public Planner {
 public:
  std::string name() const override { return "online eviction"; }
  bool accepts_keep_all() const override { return true; }

  std::vector<Proposal> propose(const Graph& graph, Bytes budget) const override {
    std::vector<Proposal> schedules;
    const auto attempt = [&](Bytes level) {
      const Recording recording(graph, level);
      if (recording.fits()) schedules.push_back(recording.schedule());
      return recording.fits();
    };
    const Recording unbounded(graph, std::numeric_limits<Bytes>::max());
    const Bytes highest = unbounded.peak();
    if (budget >= highest) return {unbounded.schedule()};
    // The layout may take a little more than the bytes that are counted here.
    for (const Bytes part : {Bytes{0}, Bytes{64}, Bytes{16}}) {
      attempt(part == 0 ? budget : budget - budget / part);
    }
    if (!schedules.empty()) return schedules;
    // Nothing fits: look for the smallest budget that something does.
    Bytes low = budget;
    Bytes high = highest;
    schedules.push_back(unbounded.schedule());
    for (int halvings = 0; halvings < 10 && high - low > high / 100; ++halvings) {
      const Bytes middle = low + (high - low) / 2;
      (attempt(middle) ? high : low) = middle;
    }
    return schedules;
  }
};

}  // namespace

PlannerPtr online() { return std::make_shared<Online>(); }

}  // namespace palimpsest
