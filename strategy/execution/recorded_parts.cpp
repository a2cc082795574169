#include "strategy/execution/recorded_parts.h"

#include <utility>

#include "strategy/base/batch_parts.h"
#include "strategy/base/record_model.h"
#include "strategy/base/updates.h"

namespace palimpsest {

RecordedParts::RecordedParts(Setting setting)
    : setting_(std::move(setting)), parts_(static_cast<std::size_t>(setting_.parts)) {
  setting_.counts.begin(setting_.parts > 1 ? parts_.size() : 0);
  for (int part = 0; part < setting_.parts; ++part) {
    if (setting_.parts > 1) {
      parts_[static_cast<std::size_t>(part)].examples =
          examples_of(part_of(setting_.batch, part, setting_.parts));
    }
    examples_.push_back(at(part).examples);
  }
}

LossAndOutputs RecordedParts::record_on(Tape& tape, int part) {
  const std::vector<Tensor> tensors = part_of(setting_.batch, part, setting_.parts);
  std::optional<CountedMeans::Recording> counting;
  if (setting_.parts > 1) {
    counting.emplace(tape, setting_.counts.of(static_cast<std::size_t>(part)));
  }
  LossAndOutputs made =
      record_model(setting_.model, tape, setting_.parameters, tensors, setting_.where);
  require_not_frozen(tape, setting_.parameters, setting_.where);
  if (setting_.parts > 1) require_all_given(tape, setting_.parameters, setting_.where);
  return made;
}

void RecordedParts::record(int part) {
  const int replicas = static_cast<int>(setting_.replicas.size());
  Replica& replica = setting_.replicas[static_cast<std::size_t>(part % replicas)];
  Tape& tape = replica.tape(part / replicas, part, setting_.count);
  Part& recorded = parts_[static_cast<std::size_t>(part)];
  recorded.values = record_on(tape, part);
  if (setting_.parts > 1) setting_.counts.require_as_many(static_cast<std::size_t>(part));
  recorded.values->loss = setting_.scale(recorded.values->loss);
  // Parts may run at the same time, so none of them may update.
  recorded.updates.assign(tape.updates().begin(), tape.updates().end());
  append_updates(*recorded.values);
  tape.forget_updates();
}

std::vector<double> RecordedParts::count_first(LossReduction reduction) {
  setting_.counts.begin(parts_.size());
  for (int part = 0; part < setting_.parts; ++part) {
    Tape tape(setting_.counts.evaluator());
    begin_part(tape, part, setting_.count);
    record_on(tape, part);
  }
  std::vector<double> whole = setting_.counts.count();
  setting_.counts.share_with_later(whole, weights(reduction));
  return whole;
}

}  // namespace palimpsest
