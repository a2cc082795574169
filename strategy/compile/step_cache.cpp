#include "strategy/compile/step_cache.h"

#include <algorithm>

#include "strategy/base/cache_limit.h"
#include "strategy/base/profile.h"
#include "strategy/explain/node_labels.h"

namespace palimpsest {
namespace {

/// A training loop has one or two steps. Each takes as many bytes as its tape.
constexpr std::size_t most_steps = 4;
constexpr std::size_t least_steps = 2;

Bytes bytes_of_step(const CachedStep& step) {
  constexpr Bytes bytes_of_attributes = 64;
  return step.tape.metadata_bytes() + bytes_of_attributes * step.tape.node_count();
}

std::uint64_t hash_of(const Profile* costs) { return costs != nullptr ? costs->hash() : 0; }

}  // namespace

std::shared_ptr<CachedProgram> CachedStep::program_for(const ProgramSpec& spec) const {
  const bool is_same =
      threads_ == spec.threads && machine_ == spec.machine && costs_ == hash_of(spec.costs);
  return is_same ? program_ : nullptr;
}

void CachedStep::remember(const ProgramSpec& spec, std::shared_ptr<CachedProgram> compiled) {
  program_ = std::move(compiled);
  threads_ = spec.threads;
  machine_ = spec.machine;
  costs_ = hash_of(spec.costs);
}

Bytes StepCache::bytes() const { return bytes_of_all(steps_, bytes_of_step); }

CachedStep* StepCache::find(const Tape& tape, std::span<const ValueId> values) {
  const auto step = std::find_if(steps_.begin(), steps_.end(), [&](const CachedStep& known) {
    return std::ranges::equal(known.recorded.values, values) &&
           known.recorded.backward_begins == tape.node_count() && tape.begins(known.tape);
  });
  return step == steps_.end() ? nullptr : &*step;
}

void StepCache::use(const CachedStep& step) {
  const auto used =
      std::ranges::find_if(steps_, [&](const CachedStep& each) { return &each == &step; });
  steps_.splice(steps_.begin(), steps_, used);
  unused_ = 0;
}

void StepCache::add(const Tape& tape, const Differentiated& recorded) {
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (!tape.attributes(node).may_come_again()) return;
  }
  constexpr std::uint32_t most_doublings = 10;
  if (++passed_over_ < 1u << std::min(unused_, most_doublings)) return;
  passed_over_ = 0;
  ++unused_;
  std::list<CachedStep> made;
  CachedStep& step = made.emplace_front();
  step.tape.copy_nodes(tape);
  step.labels_hash = NodeLabels::hash_of(step.tape);
  step.recorded = recorded;
  step.targets = recorded.values;
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
