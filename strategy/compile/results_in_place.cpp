#include "strategy/compile/results_in_place.h"

#include <algorithm>

namespace palimpsest {

ResultsInPlace::ResultsInPlace(const Tape& tape, const Lowered& lowered, const Schedule& schedule)
    : tape_(tape),
      lowered_(lowered),
      graph_(lowered.graph()),
      runs_(graph_.node_count()),
      readers_(graph_.value_count()),
      wanted_(graph_.value_count()) {
  for (const Step& step : schedule.steps) {
    if (step.kind == Step::Kind::compute) ++runs_[step.id];
  }
  for (NodeId unit = 0; unit < graph_.node_count(); ++unit) {
    for (const ValueId input : graph_.inputs(unit)) {
      readers_[graph_.storage(input)].push_back(unit);
    }
  }
  for (const ValueId target : graph_.targets()) wanted_[graph_.storage(target)] = true;
}

ResultsInPlace::Replacement ResultsInPlace::find(ValueId result) const {
  Replacement found;
  if (lowered_.donated_to(result).empty()) return found;
  for (ValueId value = result; value != none; value = replaced_value(value)) {
    if (value != result) found.before.push_back(value);
    found.sources = replaced_sources(value, result);
    if (!found.sources.empty()) return found;
  }
  return {};
}

/// The value of another unit that `value` replaces in place; `none` if there is none.
ValueId ResultsInPlace::replaced_value(ValueId value) const {
  const NodeId unit = graph_.producer(value);
  const int input = graph_.takes_over(value);
  if (input < 0 || runs_[unit] != 1) return none;
  const ValueId made = graph_.inputs(unit)[static_cast<std::size_t>(input)];
  const ValueType type = tape_.type(lowered_.recorded(value));
  const bool is_own = graph_.storage(made) == made && graph_.bytes(made) > 0 &&
                      !graph_.is_present(made) && !graph_.is_elsewhere(made) && !wanted_[made];
  if (!is_own || graph_.bytes(made) != type.bytes() ||
      tape_.type(lowered_.recorded(made)).dtype != type.dtype) {
    return none;
  }
  // Made again, it would be written over the result.
  if (runs_[graph_.producer(made)] != 1 || readers_[made].size() != 1) return none;
  for (std::uint32_t i = 0; i < graph_.output_count(unit); ++i) {
    const ValueId other = graph_.first_output(unit) + i;
    if (other != value && graph_.takes_over(other) == input) return none;
  }
  return made;
}

/// The sources donated to `result` that `value` may replace in place.
std::vector<ValueId> ResultsInPlace::replaced_sources(ValueId value, ValueId result) const {
  const NodeId unit = graph_.producer(value);
  std::vector<ValueId> sources;
  if (runs_[unit] != 1) return sources;
  const ValueType after = tape_.type(lowered_.recorded(value));
  const std::span<const ValueId> inputs = graph_.inputs(unit);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ValueId source = graph_.storage(inputs[i]);
    const ValueId given = lowered_.recorded(source);
    const std::span<const ValueId> donated = lowered_.donated_to(result);
    const bool is_donated = std::ranges::find(donated, given) != donated.end();
    if (!graph_.is_source_value(source) || !is_donated || wanted_[source]) continue;
    const ValueType before = tape_.type(given);
    if (before.dtype == after.dtype && before.shape.elements() == after.shape.elements() &&
        replaces_in_place(value, i) && is_last_reader(unit, source)) {
      sources.push_back(source);
    }
  }
  return sources;
}

bool ResultsInPlace::replaces_in_place(ValueId value, std::size_t input) const {
  const NodeId unit = graph_.producer(value);
  const FusedKernel* const group = lowered_.program(unit);
  if (group == nullptr) return graph_.takes_over(value) == static_cast<int>(input);
  return group->may_write_over(value - graph_.first_output(unit),
                               static_cast<std::uint32_t>(input));
}

/// True if `unit` reads a source through one input, and needs all other units that read it. In any
/// order of execution these have ended before.
bool ResultsInPlace::is_last_reader(NodeId unit, ValueId source) const {
  const std::vector<NodeId>& readers = readers_[source];
  if (std::ranges::count(readers, unit) != 1) return false;
  if (readers.size() == 1) return true;
  std::vector<bool> needed(graph_.node_count());
  needed[unit] = true;
  for (NodeId each = unit + 1; each-- > 0;) {
    if (!needed[each] || runs_[each] == 0) continue;
    for (const ValueId input : graph_.inputs(each)) needed[graph_.producer(input)] = true;
  }
  return std::ranges::all_of(readers, [&](NodeId reader) {
    return runs_[reader] == 0 || (runs_[reader] == 1 && needed[reader]);
  });
}

}  // namespace palimpsest
