#include "checkpoint/serial_steps.h"

#include <algorithm>

namespace palimpsest {

std::vector<std::uint32_t> serial_steps(const Graph& graph, const Schedule& schedule) {
  std::vector<std::uint32_t> serial;
  const auto is_serial_step = [&](const Step& step) {
    return step.kind == Step::Kind::compute && graph.is_serial(step.id);
  };
  if (std::ranges::none_of(schedule.steps, is_serial_step)) return serial;
  // By storage: the number of serial nodes run when its content came to depend on the last of them.
  std::vector<std::size_t> depends(graph.value_count(), 0);
  bool any_at_once = false;
  for (std::uint32_t k = 0; k < schedule.steps.size(); ++k) {
    const Step& step = schedule.steps[k];
    if (step.kind != Step::Kind::compute) continue;
    const bool follows = std::ranges::any_of(graph.inputs(step.id), [&](ValueId input) {
      return depends[graph.storage(input)] == serial.size() && !serial.empty();
    });
    const bool is_serial = graph.is_serial(step.id);
    if (is_serial) {
      any_at_once = any_at_once || (!serial.empty() && !follows);
      serial.push_back(k);
    }
    if (!is_serial && !follows) continue;
    for (std::uint32_t i = 0; i < graph.output_count(step.id); ++i) {
      depends[graph.storage(graph.first_output(step.id) + i)] = serial.size();
    }
  }
  if (!any_at_once) serial.clear();
  return serial;
}

}  // namespace palimpsest
