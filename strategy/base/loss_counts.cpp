#include "strategy/base/loss_counts.h"

#include <algorithm>

#include "autodiff/operations/counted_mean.h"

namespace palimpsest {
namespace {

/// Whether any node has a mark, which few tapes have.
bool has_marks(const Tape& tape) {
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (count_mark(tape, node)) return true;
  }
  return false;
}

}  // namespace

/// Constants of several elements and random numbers count as examples.
bool has_other_terms(const Var& loss) {
  const Tape& tape = loss.tape();
  std::vector<bool> depends(loss.node() + 1);
  for (NodeId node = 0; node <= loss.node(); ++node) {
    if (tape.is_leaf(node)) {
      depends[node] =
          !tape.is_parameter(node) && tape.shape(tape.first_output(node)).elements() > 1;
      continue;
    }
    const auto inputs = tape.inputs(node);
    const auto is_divisor = [&](ValueId input) {
      return count_mark(tape, tape.producer(input)).has_value();
    };
    if (std::ranges::any_of(inputs, is_divisor)) continue;  // a counted mean
    depends[node] =
        tape.operation(node).random || std::ranges::any_of(inputs, [&](ValueId input) -> bool {
          return depends[tape.producer(input)];
        });
  }
  return depends[loss.node()];
}

RecordedCounts::RecordedCounts(const Var& loss) {
  Tape& tape = loss.tape();
  if (!has_marks(tape)) return;
  const std::vector<bool> behind = nodes_behind({&loss, 1});
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (count_mark(tape, node) != CountMark::own) continue;
    // The count that a checkpoint returns is marked beside its loss.
    if (behind[tape.producer(tape.inputs(node)[0])])
      counts_.push_back(tape.var(tape.first_output(node)));
  }
  has_other_terms_ = palimpsest::has_other_terms(loss);
}

void RecordedCounts::append_to(LossAndOutputs& values) const {
  values.outputs.insert(values.outputs.end(), counts_.begin(), counts_.end());
}

LossCounts RecordedCounts::read(std::span<const Tensor> made) const {
  LossCounts read{.counts = {}, .has_other_terms = has_other_terms_};
  for (const Tensor& count : made) read.counts.push_back(count.item());
  return read;
}

}  // namespace palimpsest
