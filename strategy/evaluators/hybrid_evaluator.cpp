#include "strategy/evaluators/hybrid_evaluator.h"

#include <vector>

#include "strategy/evaluators/engine.h"
#include "strategy/run/present.h"

namespace palimpsest {
namespace {

std::string_view outermost_scope(const Tape& tape, NodeId node) {
  const std::string_view scopes = tape.stage_of(node);
  return scopes.substr(0, scopes.find('/'));
}

}  // namespace

void HybridEvaluator::on_record(Tape& tape, std::uint32_t node) {
  // Another tape, or nodes were removed from this one. Missing values are computed when they are
  // read.
  if (&tape != tape_ || node < next_) begin_stage(tape, node);
  const std::string_view name = outermost_scope(tape, node);
  const bool is_full = nodes_ >= limits_.nodes || bytes_ >= limits_.bytes;
  const bool ends = nodes_ > 0 && (is_full || name != name_);
  const NodeId first = first_;
  // Also if the ended stage cannot be computed, since the next one does not depend on it.
  if (ends) begin_stage(tape, node);
  name_ = name;
  if (ends) end_stage(tape, first, node);
  next_ = node + 1;
  ++nodes_;
  if (tape.operation(node).view) return;
  for (std::uint32_t i = 0; i < tape.output_count(node); ++i) {
    bytes_ += tape.bytes(tape.first_output(node) + i);
  }
}

void HybridEvaluator::on_clear(Tape& tape) noexcept {
  if (&tape == tape_) tape_ = nullptr;
}

void HybridEvaluator::begin_stage(const Tape& tape, NodeId first) {
  // A value in an arena would have to be copied before a later run could drop it.
  if (tape_ != &tape) engine().use_no_arena();
  tape_ = &tape;
  first_ = next_ = first;
  nodes_ = 0;
  bytes_ = 0;
}

void HybridEvaluator::end_stage(Tape& tape, NodeId begin, NodeId end) {
  tape.notice_writes();
  const ValueId first = tape.first_output(begin);
  std::vector<bool> is_read(tape.value_count());
  for (NodeId node = begin; node < end; ++node) {
    for (const ValueId input : tape.inputs(node)) is_read[input] = true;
  }
  std::vector<ValueId> read;
  for (ValueId value = 0; value < first; ++value) {
    if (is_read[value] && !tape.has_value(value)) read.push_back(value);
  }
  std::vector<ValueId> ends;
  for (NodeId node = begin; node < end; ++node) {
    std::vector<ValueId> values;
    bool is_end = true;
    for (std::uint32_t i = 0; i < tape.output_count(node); ++i) {
      const ValueId value = tape.first_output(node) + i;
      is_end = is_end && !is_read[value];
      // Internal values of a loop have no bytes either.
      if (tape.bytes(value) > 0 && !tape.has_value(value)) values.push_back(value);
    }
    if (is_end) ends.insert(ends.end(), values.begin(), values.end());
  }
  if (!read.empty() || !ends.empty()) compute_beside_others(tape, ends, read);
}

void HybridEvaluator::compute_beside_others(Tape& tape, std::span<const ValueId> ends,
                                            std::span<const ValueId> read) {
  std::vector<ValueId> wanted(read.begin(), read.end());
  wanted.insert(wanted.end(), ends.begin(), ends.end());
  if (options().memory_budget == unlimited) return compute(tape, wanted);
  std::vector<ValueId> all = wanted;
  append_present(tape, all);
  const auto fits = [&](const std::vector<ValueId>& values) {
    try {
      compute(tape, values);
    } catch (const BudgetError&) {
      return false;
    }
    return true;
  };
  if (all.size() > ends.size() && fits(all)) return;
  if (!read.empty() && all.size() > wanted.size() && fits(wanted)) return;
  // Which read values are missing depends on earlier stages. The budget named in an error must not
  // depend on them, so it is that of the ends alone. Without ends nothing has to be computed.
  if (!ends.empty()) compute(tape, ends);
}

}  // namespace palimpsest
