#include "benchmarks/training/roofline.h"

#include <algorithm>
#include <vector>

namespace palimpsest::benchmarks {

double least_seconds(const Model& model, const Machine& machine) {
  Tape tape;
  const Var loss = model.record_loss(tape);
  std::vector<Var> parameters;
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (tape.is_parameter(node)) parameters.push_back(tape.var(tape.first_output(node)));
  }
  gradient(loss, parameters);
  double seconds = 0;
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (tape.is_leaf(node) || tape.operation(node).view) continue;
    const Cost cost = cost_of(NodeView(tape.nodes(), node));
    seconds += std::max(cost.flops / machine.flops_per_second,
                        cost.bytes / bytes_per_second(cost.bytes, machine));
  }
  return seconds;
}

}  // namespace palimpsest::benchmarks
