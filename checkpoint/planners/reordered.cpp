#include "checkpoint/engine_planner.h"
#include "checkpoint/planners.h"
#include "checkpoint/reorder.h"
#include "checkpoint/schedule.h"

namespace palimpsest {

namespace {

class Reordered final : public EnginePlanner {
 public:
  std::string name() const override { return "reordered"; }
  bool accepts_keep_all() const override { return true; }
  std::vector<Proposal> propose(const Graph& graph, Bytes) const override {
    return {drop_after_last_use(graph, reorder(graph))};
  }
};

}  // namespace

PlannerPtr reordered() { return std::make_shared<Reordered>(); }

}  // namespace palimpsest
