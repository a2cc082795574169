#include "strategy/loops/held_components.h"

#include <algorithm>
#include <utility>

#include "checkpoint/tape_graph.h"
#include "strategy/loops/loop.h"

namespace palimpsest {
namespace {

/// A set of so many components has a key of its own.
constexpr std::size_t most_in_key = 12;

/// The types of a state that has no elements in some components.
std::vector<ValueType> types_of(const Loop& loop, const std::vector<bool>& components) {
  std::vector<ValueType> types = loop.types(loop.step().state);
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (!components[i]) types[i].shape = Shape{0};
  }
  return types;
}

/// The program of a step that makes some components of the next state.
BufferInterface program_of(const RecordedStep& step, const std::vector<bool>& components) {
  BufferInterface wanted{step.arguments(), {}, step.tape->node_count()};
  for (std::size_t i = 0; i < components.size(); ++i) {
    if (components[i]) wanted.results.push_back(step.next[i]);
  }
  return wanted;
}

}  // namespace

std::vector<bool> components_read(const Tape& tape, std::span<const ValueId> state,
                                  std::span<const ValueId> results) {
  std::vector<bool> is_read(tape.value_count());
  for (const ValueId result : results) is_read[result] = true;
  for (const NodeId node : graph_of(tape, results).needed_nodes()) {
    for (const ValueId input : tape.inputs(node)) is_read[input] = true;
  }
  std::vector<bool> components;
  for (const ValueId component : state) components.push_back(is_read[component]);
  return components;
}

void add_components_needed(const Loop& loop, std::vector<bool>& components,
                           std::span<const ValueId> outputs) {
  const RecordedStep& step = loop.step();
  const std::lock_guard lock(*loop.forward().mutex());
  for (bool has_grown = true; has_grown;) {
    has_grown = false;
    std::vector<ValueId> results = program_of(step, components).results;
    results.insert(results.end(), outputs.begin(), outputs.end());
    const std::vector<bool> read = components_read(*step.tape, step.state, results);
    for (std::size_t i = 0; i < read.size(); ++i) {
      if (!read[i] || components[i]) continue;
      components[i] = has_grown = true;
    }
  }
}

HeldComponents::HeldComponents(const Loop& loop, std::vector<bool> components)
    : loop_(loop),
      components_(std::move(components)),
      count_(static_cast<std::size_t>(std::ranges::count(components_, true))),
      block_(types_of(loop, components_)),
      codec_(types_of(loop, components_), loop.options().codec) {
  if (count_ > 0) {
    advance_.emplace(loop.step().tape, loop.forward().mutex(),
                     program_of(loop.step(), components_));
  }
  if (loop.options().spill.empty() || block_.bytes == 0) return;
  // A loop that is derived from this one has costs of its own, so these are no options of it.
  LoopOptions of_disk = loop.options();
  of_disk.disk_costs = loop.given_costs();
  disk_ = std::make_unique<const LoopDisk>(of_disk, codec_.record(), loop.likely_steps(),
                                           [this] { return seconds(1); });
}

std::uint64_t HeldComponents::key_of(const std::vector<bool>& components) {
  const auto count = std::ranges::count(components, true);
  if (count == std::ssize(components)) return 0;
  if (components.size() > most_in_key) return count == 0 ? 1 : 0;
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < components.size(); ++i) bits |= std::uint64_t{components[i]} << i;
  return bits + 1;
}

std::vector<bool> HeldComponents::with_key(std::uint64_t key, std::size_t count) {
  std::vector<bool> components(count, key == 0);
  for (std::size_t i = 0; i < std::min(count, most_in_key) && key > 0; ++i) {
    components[i] = ((key - 1) >> i & 1) != 0;
  }
  return components;
}

std::vector<std::uint32_t> HeldComponents::list() const {
  std::vector<std::uint32_t> held;
  for (std::uint32_t i = 0; i < components_.size(); ++i) {
    if (components_[i]) held.push_back(i);
  }
  return held;
}

double HeldComponents::seconds(int threads, Bytes budget) const {
  return advance_ ? advance_->get(threads, budget)->seconds() : 0;
}

Bytes HeldComponents::workspace(int threads, Bytes budget) const {
  return advance_ ? advance_->get(threads, budget)->workspace() : 0;
}

void HeldComponents::choose(const Addresses& state, Addresses& chosen) const {
  chosen.clear();
  for (std::size_t i = 0; i < state.size(); ++i) {
    if (components_[i]) chosen.push_back(state[i]);
  }
}

void HeldComponents::complete(Addresses& state, const Addresses& others) const {
  for (std::size_t i = 0; i < state.size(); ++i) {
    if (!components_[i]) state[i] = others[i];
  }
}

}  // namespace palimpsest
