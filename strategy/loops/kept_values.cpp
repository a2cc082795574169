#include "strategy/loops/kept_values.h"

#include <algorithm>

#include "autodiff/trace.h"
#include "checkpoint/tape_graph.h"
#include "strategy/loops/loop_division.h"

namespace palimpsest {
namespace {

BufferInterface program_with(const RecordedStep& step, const std::vector<ValueId>& kept) {
  BufferInterface wanted = program_of(step, true);
  wanted.results.insert(wanted.results.end(), kept.begin(), kept.end());
  return wanted;
}

/// Chooses among the values of a step.
class Choice {
 public:
  Choice(const RecordedStep& step, const StepPrograms& backward, const std::vector<bool>& held)
      : tape_(backward.tape()),
        ends_(step.tape->node_count()),
        is_kept_(ends_),
        is_seen_(ends_),
        varies_(ends_),
        is_result_(tape_.value_count()),
        is_held_(tape_.value_count()) {
    for (std::size_t i = 0; i < held.size(); ++i) {
      if (held[i]) is_held_[step.next[i]] = true;
    }
    for (const std::vector<ValueId>* each : {&step.next, &step.outputs}) {
      for (const ValueId value : *each) is_result_[storage(value)] = true;
    }
    for (const std::vector<ValueId>* each : {&step.state, &step.inputs}) {
      for (const ValueId value : *each) varies_[tape_.producer(value)] = true;
    }
    for (NodeId node = 0; node < ends_; ++node) {
      for (const ValueId input : tape_.inputs(node)) {
        if (varies_[tape_.producer(input)]) varies_[node] = true;
      }
    }
    const Graph graph = graph_of(tape_, backward.interface().results);
    for (const NodeId node : graph.needed_nodes()) {
      if (node < ends_) continue;
      for (const ValueId input : tape_.inputs(node)) need(input);
    }
  }

  std::vector<ValueId> values() const {
    std::vector<ValueId> values;
    for (NodeId node = 0; node < ends_; ++node) {
      if (!is_kept_[node]) continue;
      const ValueId first = tape_.first_output(node);
      for (ValueId i = 0; i < tape_.output_count(node); ++i) values.push_back(first + i);
    }
    return values;
  }

 private:
  /// True if the node is run again instead.
  bool is_made_again(NodeId node) const {
    const Operation& operation = tape_.operation(node);
    const ValueId value = tape_.first_output(node);
    if (operation.view || operation.has_state_budget) return true;
    if (tape_.output_count(node) > 1) return false;
    // A program copies a result that is in two places.
    if (is_result_[value]) return true;
    if (operation.access != nullptr || operation.stretches != nullptr) {
      // The derivative can read the elements where they were before.
      Bytes from = 0;
      for (const ValueId input : tape_.inputs(node)) from += tape_.bytes(input);
      return from <= tape_.bytes(value) / 4 * 5;
    }
    return false;
  }

  /// The value whose storage it shares.
  ValueId storage(ValueId value) const {
    while (tape_.operation(tape_.producer(value)).view) {
      value = tape_.inputs(tape_.producer(value))[0];
    }
    return value;
  }

  void need(ValueId value) {
    const NodeId node = tape_.producer(value);
    if (node >= ends_ || !varies_[node] || tape_.is_leaf(node) || is_seen_[node]) return;
    if (is_held_[value] && tape_.output_count(node) == 1) return;
    is_seen_[node] = true;
    if (!is_made_again(node)) {
      is_kept_[node] = true;
      return;
    }
    for (const ValueId input : tape_.inputs(node)) need(input);
  }

  const Tape& tape_;
  NodeId ends_;  // the step, before its derivative
  std::vector<bool> is_kept_;
  std::vector<bool> is_seen_;
  std::vector<bool> varies_;     // depends on state or inputs
  std::vector<bool> is_result_;  // by value: the next state or an output, or a view of it is
  std::vector<bool> is_held_;    // by value: a component of the next state that is held
};

/// The machine with caches of usual speed, unless it has caches.
Machine with_caches(Machine machine) {
  if (machine.caches[0].bytes == 0) machine.caches = {{{32_KiB, 100e9}, {8_MiB, 50e9}}};
  return machine;
}

/// Seconds to make values again within a step. They pass through the first cache.
double seconds_again(const Cost& all, const Cost& rest, const Machine& machine) {
  return (all.flops - rest.flops) / machine.flops_per_second +
         (all.bytes - rest.bytes) / machine.caches[0].bytes_per_second;
}

/// Seconds to write the values of a step, and to read them in so many backward parts.
double seconds_to_keep(const KeptValues& kept, const HeldComponents& held, std::size_t parts,
                       const Machine& machine) {
  constexpr double seconds_per_address = 1e-9;
  const Bytes in_all = held.loop().steps() * (kept.block.stride + held.block().stride);
  const double transfer = static_cast<double>(kept.block.stride) /
                          bytes_per_second(static_cast<double>(in_all), machine);
  const double addresses = seconds_per_address * static_cast<double>(kept.values.size());
  return static_cast<double>(1 + parts) * (transfer + addresses);
}

}  // namespace

KeptValues::KeptValues(const Loop& loop, std::vector<ValueId> values)
    : key(key_of(values)),
      values(std::move(values)),
      block(loop.types(this->values)),
      forward(loop.step().tape, loop.forward().mutex(), program_with(loop.step(), this->values)) {}

std::uint64_t KeptValues::key_of(std::span<const ValueId> values) {
  std::uint64_t key = 0;
  for (const ValueId value : values) key = (key ^ value) * 0x9e3779b97f4a7c15u + (key >> 32);
  return (key >> 21) | 1;
}

bool may_keep_values(const Loop& loop) {
  const LoopOptions& options = loop.options();
  return !loop.has_condition() && !loop.is_recorded_again() && loop.steps() > 0 &&
         loop.is_exact() && loop.held().disk() == nullptr && loop.resume() == nullptr &&
         !options.check;
}

std::vector<ValueId> values_to_keep(const RecordedStep& step, const StepPrograms& backward,
                                    const std::vector<bool>& held) {
  return Choice(step, backward, held).values();
}

std::pair<std::shared_ptr<Tape>, BufferInterface> from_kept_values(const KeptValues& kept,
                                                                   const RecordedStep& step,
                                                                   const StepPrograms& backward,
                                                                   const std::vector<bool>& held) {
  const std::lock_guard lock(*backward.mutex());
  const Tape& from = backward.tape();
  const auto tape = std::make_shared<Tape>();
  BufferInterface program{.arguments = {}, .results = {}, .backward_begins = 0};
  std::vector<ValueId> arguments;
  std::vector<Var> values;
  const auto add = [&](ValueId value, bool is_read) {
    const Var leaf = tape->placeholder(from.type(value), from.where(from.producer(value)));
    program.arguments.push_back(leaf.id());
    if (!is_read) return;
    arguments.push_back(value);
    values.push_back(leaf);
  };
  const std::vector<ValueId>& given = backward.interface().arguments;
  const std::vector<ValueId> own = step.arguments();
  for (const ValueId value : own) add(value, true);
  for (std::size_t i = 0; i < step.next.size(); ++i) {
    // A node is replaced as a whole.
    const ValueId value = step.next[i];
    const NodeId node = from.producer(value);
    add(value, held[i] && !from.is_leaf(node) && from.output_count(node) == 1);
  }
  for (const ValueId value : kept.values) add(value, true);
  for (const ValueId value : std::span(given).subspan(own.size())) add(value, true);
  const std::vector<Var> made =
      Trace::copy(from, *tape, arguments, values, backward.interface().results);
  for (const Var& each : made) program.results.push_back(each.id());
  const std::vector<ValueId>& results = backward.interface().results;
  for (const auto& [argument, result] : backward.interface().donations) {
    const auto from_end = given.end() - std::ranges::find(given, argument);
    const auto at = std::ranges::find(results, result) - results.begin();
    program.donations.push_back({*(program.arguments.end() - from_end), program.results[at]});
  }
  return {tape, std::move(program)};
}

const KeptValues* values_worth_keeping(std::span<const LoopGradient* const> gradients,
                                       const Machine& assumed) {
  const Loop& loop = gradients[0]->loop();
  std::vector<ValueId> values;
  for (const LoopGradient* gradient : gradients) {
    const std::vector<ValueId>& own = gradient->values_to_keep();
    values.insert(values.end(), own.begin(), own.end());
  }
  std::ranges::sort(values);
  values.erase(std::ranges::unique(values).begin(), values.end());
  if (values.empty()) return nullptr;
  const KeptValues& kept = loop.keep(values);
  if (kept.block.bytes == 0) return nullptr;
  const Machine machine = with_caches(assumed);
  double saved =
      -seconds_to_keep(kept, LoopParts{loop, gradients}.held(), gradients.size(), machine);
  for (const LoopGradient* gradient : gradients) {
    saved += seconds_again(gradient->backward().cost(), gradient->backward(kept).cost(), machine);
  }
  return saved > 0 ? &kept : nullptr;
}

}  // namespace palimpsest
