#include "strategy/hybrid_evaluator.h"

#include <vector>

namespace palimpsest {
namespace {

std::string_view outermost_scope(const Tape& tape, NodeId node) {
  const std::string_view scopes = tape.scope_of(node);
  return scopes.substr(0, scopes.find('/'));
}

}  // namespace

void HybridEvaluator::on_record(Tape& tape, std::uint32_t node) {
  if (&tape != tape_ || node < next_) {
    // Another tape, or nodes were taken off this one: what is missing is computed when it is read.
    tape_ = &tape;
    first_ = next_ = node;
    nodes_ = 0;
    bytes_ = 0;
  }
  const std::string_view name = outermost_scope(tape, node);
  const bool is_full = nodes_ >= limits_.nodes || bytes_ >= limits_.bytes;
  if (nodes_ > 0 && (is_full || name != name_)) {
    end_stage(tape, node);
    first_ = node;
    nodes_ = 0;
    bytes_ = 0;
  }
  name_ = name;
  next_ = node + 1;
  if (tape.is_leaf(node)) return;
  ++nodes_;
  if (tape.operation(node).view) return;
  for (std::uint32_t i = 0; i < tape.output_count(node); ++i) {
    bytes_ += tape.bytes(tape.first_output(node) + i);
  }
}

void HybridEvaluator::on_clear(Tape& tape) noexcept {
  if (&tape == tape_) tape_ = nullptr;
}

void HybridEvaluator::end_stage(Tape& tape, NodeId end) {
  const ValueId first = tape.first_output(first_);
  std::vector<bool> is_read(tape.value_count() - first);
  for (NodeId node = first_; node < end; ++node) {
    for (const ValueId input : tape.inputs(node)) {
      if (input >= first) is_read[input - first] = true;
    }
  }
  std::vector<ValueId> made;
  for (NodeId node = first_; node < end; ++node) {
    std::vector<ValueId> values;
    bool is_end = true;
    for (std::uint32_t i = 0; i < tape.output_count(node); ++i) {
      const ValueId value = tape.first_output(node) + i;
      is_end = is_end && !is_read[value - first];
      // What a loop has for itself has no bytes either.
      if (tape.bytes(value) > 0 && !tape.has_value(value)) values.push_back(value);
    }
    if (is_end) made.insert(made.end(), values.begin(), values.end());
  }
  if (!made.empty()) compute(tape, made);
}

}  // namespace palimpsest
