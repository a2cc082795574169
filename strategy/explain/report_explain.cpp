#include "autodiff/files.h"
#include "strategy/base/report.h"
#include "strategy/explain/explain_text.h"
#include "strategy/explain/page.h"

namespace palimpsest {

std::string Report::explain() const {
  std::string text;
  if (explanation != nullptr) {
    if (replicas > 1 || micro_batches > 1) text = "one part of the batch:\n";
    text += palimpsest::explain(*explanation);
  } else {
    text = "plan: " + summary() + "\nNo single plan covers this run.\n";
  }
  for (const Loop& loop : loops) {
    text += "loop " + loop.name + ": " + std::to_string(loop.steps) + " steps, " +
            loop.describe_states() + ", values of " + std::to_string(loop.kept_steps) +
            " steps kept, " + std::to_string(loop.forward_steps) + " steps run forward, " +
            std::to_string(loop.recomputed_steps) + " of these again, " +
            std::to_string(loop.disk_writes) + " states written to disk\n";
  }
  const auto add_part = [&](const char* kind, std::size_t index, const auto& part) {
    text += std::string(kind) + " " + std::to_string(index) + ": peak " +
            format_bytes(part.predicted_peak) + " predicted, " + format_bytes(part.measured_peak) +
            " measured, " + format_bytes(part.incoming) + " received" +
            (part.computes_again ? ", recomputes its forward part\n" : "\n");
  };
  for (std::size_t s = 0; s < stages.size(); ++s) add_part("stage", s, stages[s]);
  for (std::size_t d = 0; d < devices.size(); ++d) add_part("device", d, devices[d]);
  return text;
}

void Report::write_html(const std::string& path) const {
  write_file(path, page_of(*this), "report");
}

}  // namespace palimpsest
