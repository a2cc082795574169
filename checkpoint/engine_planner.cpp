#include "checkpoint/engine_planner.h"

namespace palimpsest {
namespace {

/// Has the defaults of planners that tell an engine nothing.
class OtherPlanner final : public EnginePlanner {
 public:
  std::string name() const override { return "other"; }
  std::vector<Proposal> propose(const Graph&, Bytes) const override { return {}; }
};

}  // namespace

const EnginePlanner& engine_part(const Planner& planner) {
  static const OtherPlanner other;
  const auto* own = dynamic_cast<const EnginePlanner*>(&planner);
  return own != nullptr ? *own : other;
}

std::optional<GraphForm> form_of(const Planner& planner) {
  const std::optional<GraphForm> form = engine_part(planner).form();
  if (form || !planner.names_nodes()) return form;
  return GraphForm{};
}

}  // namespace palimpsest
