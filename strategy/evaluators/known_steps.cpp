#include "strategy/evaluators/known_steps.h"

#include <algorithm>

#include "strategy/base/cache_limit.h"
#include "strategy/run/present.h"

namespace palimpsest {
namespace {

/// A loop has a step or two; each takes as many bytes as its tape.
constexpr std::size_t most_steps = 4;
constexpr std::size_t least_steps = 2;

Bytes bytes_of_step(const KnownSteps::Step& step) {
  constexpr Bytes bytes_of_attributes = 64;
  return step.tape.metadata_bytes() + bytes_of_attributes * step.tape.node_count();
}

/// Whether nothing is present but leaves and, from an earlier run, the loss.
bool has_leaves_only(const Tape& tape, ValueId loss) {
  std::vector<ValueId> others;
  append_present(tape, others);
  return others.empty() || (others.size() == 1 && others[0] == loss);
}

}  // namespace

Bytes KnownSteps::bytes() const { return bytes_of_all(steps_, bytes_of_step); }

KnownSteps::Step* KnownSteps::find(const Tape& tape, ValueId loss) {
  const auto step = std::find_if(steps_.begin(), steps_.end(), [&](const Step& known) {
    return known.recorded.loss == loss && known.recorded.backward_begins == tape.node_count() &&
           tape.begins(known.tape);
  });
  if (step == steps_.end() || !has_leaves_only(tape, loss)) return nullptr;
  steps_.splice(steps_.begin(), steps_, step);
  vain_ = 0;
  return &steps_.front();
}

void KnownSteps::add(const Tape& tape, const Differentiated& recorded) {
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (!tape.attributes(node).may_come_again()) return;
  }
  constexpr std::uint32_t most_doublings = 10;
  if (++passed_over_ < 1u << std::min(vain_, most_doublings)) return;
  passed_over_ = 0;
  ++vain_;
  std::list<Step> made;
  Step& step = made.emplace_front();
  step.tape.copy_nodes(tape);
  step.recorded = recorded;
  step.targets.push_back(recorded.loss);
  step.targets.insert(step.targets.end(), recorded.gradients.begin(), recorded.gradients.end());
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (!tape.is_leaf(node)) continue;
    const ValueId value = tape.first_output(node);
    if (node < recorded.backward_begins) {
      step.leaves.push_back(value);
    } else {
      step.tape.set_buffer(value, tape.buffer(value));
    }
  }
  steps_.splice(steps_.begin(), made);
  keep_within_limit(steps_, least_steps, most_steps, bytes_of_step);
}

}  // namespace palimpsest
