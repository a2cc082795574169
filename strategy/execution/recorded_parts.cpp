#include "strategy/execution/recorded_parts.h"

#include <memory>
#include <utility>

#include "strategy/base/batch_parts.h"
#include "strategy/base/record_model.h"
#include "strategy/base/updates.h"
#include "strategy/evaluators/computed_outputs.h"

namespace palimpsest {

RecordedParts::RecordedParts(Setting setting)
    : setting_(std::move(setting)), parts_(static_cast<std::size_t>(setting_.parts)) {
  setting_.counts.begin(is_cut() ? parts_.size() : 0);
  if (setting_.process.count > 1) setting_.counts.count_all();
  for (int part = 0; part < setting_.parts; ++part) {
    // A batch that is not cut may have any shapes.
    if (is_cut()) parts_[static_cast<std::size_t>(part)].examples = examples_of(tensors(part));
    examples_.push_back(at(part).examples);
  }
}

std::vector<Tensor> RecordedParts::tensors(int part) const {
  if (setting_.process.has_shard) return part_of(setting_.batch, part, setting_.parts);
  return part_of(setting_.batch, index(part), setting_.parts * setting_.process.count);
}

LossAndOutputs RecordedParts::record_on(Tape& tape, int part) {
  std::optional<CountedMeans::Recording> counting;
  if (is_cut()) counting.emplace(tape, setting_.counts.of(static_cast<std::size_t>(part)));
  LossAndOutputs made =
      record_model(setting_.model, tape, setting_.parameters, tensors(part), setting_.where);
  require_not_frozen(tape, setting_.parameters, setting_.where);
  if (is_cut()) require_all_given(tape, setting_.parameters, setting_.where);
  return made;
}

void RecordedParts::record(int part) {
  const int replicas = static_cast<int>(setting_.replicas.size());
  Tape& tape = replica_of(part).tape(part / replicas, index(part), setting_.count);
  Part& recorded = parts_[static_cast<std::size_t>(part)];
  recorded.values = record_on(tape, part);
  if (is_cut()) setting_.counts.require_as_many(static_cast<std::size_t>(part));
  recorded.values->loss = setting_.scale(recorded.values->loss);
  // Parts may run at the same time, so none of them may update.
  recorded.updates.assign(tape.updates().begin(), tape.updates().end());
  append_updates(*recorded.values);
  if (is_cut()) setting_.counts.note_needs(static_cast<std::size_t>(part), *recorded.values);
  tape.forget_updates();
}

std::vector<double> RecordedParts::count_first() {
  const auto release = [this] {
    for (Replica& replica : setting_.replicas) replica.release_memory();
  };
  if (setting_.counts.is_limited()) {
    for (int part = 0; part < setting_.parts; ++part) {
      if (has(part)) replica_of(part).drop_values((*this)[part]);
    }
    release();  // the model may look at values while it is recorded
  }
  setting_.counts.begin(parts_.size());
  // Bodies of loops whose steps differ refer to their tapes when the counts are computed.
  std::vector<std::unique_ptr<Tape>> tapes;
  for (int part = 0; part < setting_.parts; ++part) {
    Tape& tape = *tapes.emplace_back(std::make_unique<Tape>(setting_.counts.evaluator()));
    begin_part(tape, index(part), setting_.count);
    LossAndOutputs made = record_on(tape, part);
    append_updates(made);
    setting_.counts.note_needs(static_cast<std::size_t>(part), made);
    if (setting_.counts.is_limited()) drop_computed(*setting_.counts.evaluator(), made.loss);
  }
  return setting_.counts.count(release);
}

}  // namespace palimpsest
