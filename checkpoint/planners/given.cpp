#include "checkpoint/engine_planner.h"
#include "checkpoint/planners.h"

namespace palimpsest {

namespace {

class Given final : public EnginePlanner {
 public:
  explicit Given(Schedule schedule) : schedule_(std::move(schedule)) {}

  std::string name() const override { return "given"; }
  std::string key() const override {
    std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
    for (const Step& step : schedule_.steps) {
      hash = (hash ^ (std::uint64_t{step.id} << 1 | std::uint64_t(step.kind))) * 0x100000001b3;
    }
    const std::optional<GraphForm> of = form();
    return "given " + std::to_string(schedule_.steps.size()) + " " + std::to_string(hash) + " " +
           std::to_string(of->fuse) + std::to_string(of->simplify) +
           (schedule_.graph ? " " + std::to_string(schedule_.graph->wiring) : "");
  }
  bool names_nodes() const override { return true; }
  std::optional<GraphForm> form() const override {
    return schedule_.graph && schedule_.graph->form ? schedule_.graph->form : GraphForm{};
  }
  std::vector<Proposal> propose(const Graph& graph, Bytes) const override {
    require_graph(schedule_, graph);
    return {schedule_};
  }

 private:
  Schedule schedule_;
};

}  // namespace

PlannerPtr given(Schedule schedule) { return std::make_shared<Given>(std::move(schedule)); }

}  // namespace palimpsest
