#include "strategy/loops/active_components.h"

#include <algorithm>
#include <mutex>

namespace palimpsest {
namespace {

std::vector<ValueId> values_at(const std::vector<ValueId>& values,
                               const std::vector<bool>& places) {
  std::vector<ValueId> some;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (places[i]) some.push_back(values[i]);
  }
  return some;
}

/// The components of the state that depend on a value whose adjoint is returned.
std::vector<bool> varied_components(const Loop& loop, const LoopGradient::Requested& requested) {
  const RecordedStep& step = loop.step();
  const Tape& tape = *step.tape;
  const std::lock_guard lock(*loop.forward().mutex());
  std::vector<bool> varies(tape.value_count());
  for (const ValueId input : values_at(step.inputs, requested.inputs)) varies[input] = true;
  for (const ValueId value : values_at(step.captured, requested.captured)) varies[value] = true;
  std::vector<bool> varied = requested.state;
  for (bool has_grown = true; has_grown;) {
    has_grown = false;
    for (const ValueId component : values_at(step.state, varied)) varies[component] = true;
    for (NodeId node = 0; node < tape.node_count(); ++node) {
      const auto inputs = tape.inputs(node);
      if (std::ranges::none_of(inputs, [&](ValueId input) { return varies[input]; })) continue;
      const ValueId first = tape.first_output(node);
      for (ValueId i = 0; i < tape.output_count(node); ++i) varies[first + i] = true;
    }
    for (std::size_t i = 0; i < varied.size(); ++i) {
      if (!varies[step.next[i]] || varied[i]) continue;
      varied[i] = has_grown = true;
    }
  }
  return varied;
}

}  // namespace

bool is_analysed(const Loop& loop) { return !loop.is_recorded_again() && loop.resume() == nullptr; }

LoopGradient::Requested with_carried(const Loop& loop, LoopGradient::Requested requested) {
  const std::vector<ValueType> types = loop.types(loop.step().state);
  std::vector<bool> varied(types.size(), true);
  std::vector<bool> useful(types.size(), true);
  if (is_analysed(loop)) {
    varied = varied_components(loop, requested);
    useful = requested.next;
    add_components_needed(loop, useful, values_at(loop.step().outputs, requested.outputs));
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    const bool is_carried = is_floating(types[i].dtype) && varied[i] && useful[i];
    requested.carried.push_back(is_carried);
    if (is_carried) continue;
    requested.next[i] = false;
    requested.state[i] = false;
  }
  return requested;
}

}  // namespace palimpsest
