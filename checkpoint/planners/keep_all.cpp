#include "checkpoint/planners.h"
#include "checkpoint/schedule.h"

namespace palimpsest {

namespace {

class KeepAll final : public Planner {
 public:
  std::string name() const override { return "keep all"; }
  std::vector<Proposal> propose(const Graph& graph, Bytes) const override {
    return {drop_after_last_use(graph, graph.needed_nodes())};
  }
};

}  // namespace

PlannerPtr keep_all() { return std::make_shared<KeepAll>(); }

}  // namespace palimpsest
