#include "strategy/loops/active_components.h"

#include <algorithm>
#include <mutex>
#include <ranges>

namespace palimpsest {
namespace {

void mark(const std::vector<ValueId>& values, const std::vector<bool>& chosen,
          std::vector<bool>& marked) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (chosen[i]) marked[values[i]] = true;
  }
}

template <class Values>
bool is_any(const Values& values, const std::vector<bool>& marked) {
  return std::ranges::any_of(values, [&](ValueId value) { return marked[value]; });
}

/// Adds those whose value is marked. True if there are any.
bool take_marked(const std::vector<ValueId>& values, const std::vector<bool>& marked,
                 std::vector<bool>& components) {
  bool has_grown = false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!marked[values[i]] || components[i]) continue;
    components[i] = has_grown = true;
  }
  return has_grown;
}

/// The components of the state that depend on a value whose adjoint is returned.
std::vector<bool> varied_components(const RecordedStep& step,
                                    const LoopGradient::Requested& requested) {
  const Tape& tape = *step.tape;
  std::vector<bool> varied = requested.state;
  std::vector<bool> marked(tape.value_count());
  mark(step.inputs, requested.inputs, marked);
  mark(step.captured, requested.captured, marked);
  do {
    mark(step.state, varied, marked);
    for (NodeId node = 0; node < tape.node_count(); ++node) {
      if (!is_any(tape.inputs(node), marked)) continue;
      const ValueId first = tape.first_output(node);
      for (ValueId i = 0; i < tape.output_count(node); ++i) marked[first + i] = true;
    }
  } while (take_marked(step.next, marked, varied));
  return varied;
}

/// The components of the state on which a value depends whose adjoint is given.
std::vector<bool> useful_components(const RecordedStep& step,
                                    const LoopGradient::Requested& requested) {
  const Tape& tape = *step.tape;
  std::vector<bool> useful = requested.next;
  std::vector<bool> marked(tape.value_count());
  mark(step.outputs, requested.outputs, marked);
  do {
    mark(step.next, useful, marked);
    for (NodeId node = tape.node_count(); node-- > 0;) {
      const auto outputs =
          std::views::iota(tape.first_output(node)) | std::views::take(tape.output_count(node));
      if (!is_any(outputs, marked)) continue;
      for (const ValueId input : tape.inputs(node)) marked[input] = true;
    }
  } while (take_marked(step.state, marked, useful));
  return useful;
}

}  // namespace

bool is_analysed(const Loop& loop) { return !loop.is_recorded_again() && loop.resume() == nullptr; }

LoopGradient::Requested with_carried(const Loop& loop, LoopGradient::Requested requested) {
  const std::lock_guard lock(*loop.forward().mutex());
  const bool all = !is_analysed(loop);
  const std::vector<bool> varied = varied_components(loop.step(), requested);
  const std::vector<bool> useful = useful_components(loop.step(), requested);
  const std::vector<ValueType> types = loop.types(loop.step().state);
  requested.carried.assign(types.size(), false);
  for (std::size_t i = 0; i < types.size(); ++i) {
    const bool is_carried = is_floating(types[i].dtype) && (all || (varied[i] && useful[i]));
    requested.carried[i] = is_carried;
    if (is_carried) continue;
    requested.next[i] = false;
    requested.state[i] = false;
  }
  return requested;
}

}  // namespace palimpsest
