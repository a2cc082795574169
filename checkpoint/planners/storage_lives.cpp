#include "checkpoint/planners/storage_lives.h"

#include <algorithm>

namespace palimpsest {

StorageLives::StorageLives(const Stages& stages)
    : stages_(stages),
      count_(static_cast<std::uint32_t>(stages.count())),
      lives_(stages.graph().value_count()),
      output_(count_ + 1),
      through_(count_ + 1),
      gradient_(count_ + 1) {
  find();
  for (const StorageLife& life : lives_) {
    if (life.made != none) count_between_stages(life);
  }
  for (std::vector<Bytes>* sums : {&output_, &through_, &gradient_}) {
    for (std::size_t k = 1; k < sums->size(); ++k) (*sums)[k] += (*sums)[k - 1];
  }
}

void StorageLives::find() {
  const Graph& graph = stages_.graph();
  for (ValueId value = 0; value < lives_.size(); ++value) {
    if (graph.is_target(value)) (*this)[value].target = true;
    const NodeId node = graph.producer(value);
    if (graph.storage(value) != value || graph.is_source(node)) continue;
    StorageLife& life = lives_[value];
    life.bytes = graph.bytes(value);
    life.made = stages_.stage_of(node);
    life.backward = stages_.is_backward(node);
    life.held = stages_.held()[value];
  }
  for (StorageLife& life : lives_) life.held = life.held || (life.target && !life.backward);
  for (std::uint32_t k = 0; k < count_; ++k) {
    for (const NodeId node : stages_.forward(k)) {
      for_all(node, [&](StorageLife& life) { life.reach = k; });
    }
  }
  for (std::uint32_t k = count_; k-- > 0;) {
    for (const NodeId node : stages_.backward(k)) {
      for_all(node, [&](StorageLife& life) {
        life.reach = std::max(life.reach, k);
        life.lowest = k;
      });
    }
  }
}

void StorageLives::count_between_stages(const StorageLife& life) {
  const auto add = [&](std::vector<Bytes>& sums, std::uint32_t first, std::uint32_t end) {
    if (first >= end) return;
    sums[first] += life.bytes;
    sums[end] -= life.bytes;
  };
  const std::uint32_t lowest = life.target ? 0 : std::min(life.made, life.lowest);
  add(gradient_, lowest, life.held ? count_ : life.made);
  if (life.backward || life.held) return;
  add(output_, life.made, life.reach);
  add(through_, life.made + 1, life.reach);
}

}  // namespace palimpsest
