#pragma once

#include <optional>
#include <stdexcept>
#include <vector>

#include "checkpoint/chains/action.h"

namespace palimpsest::tests {

/// Carries out the actions of a snapshot schedule, counts, and refuses what the rules forbid.
class SnapshotMachine {
 public:
  SnapshotMachine(std::uint32_t steps, std::uint32_t memory_slots) : left_(steps) {
    slots(ChainAction::Tier::memory).resize(memory_slots);
  }

  void run(const ChainAction& action) {
    auto& tier = slots(action.tier);
    const bool disk = action.tier == ChainAction::Tier::disk;
    switch (action.kind) {
      case ChainAction::Kind::store:
        require(at_hand_ == action.step, "stores another state");
        if (disk && action.slot >= tier.size()) tier.resize(action.slot + 1);
        require(action.slot < tier.size(), "has too many snapshots");
        require(!tier[action.slot] || *tier[action.slot] >= left_, "overwrites what it needs");
        tier[action.slot] = action.step;
        ++(disk ? writes : stores);
        break;
      case ChainAction::Kind::restore:
        require(action.slot < tier.size() && tier[action.slot] == action.step, "is not there");
        at_hand_ = action.step;
        ++(disk ? reads : restores);
        break;
      case ChainAction::Kind::advance:
        require(at_hand_ && *at_hand_ < action.step && action.step < left_, "advances nowhere");
        forward_steps += action.step - *at_hand_;
        at_hand_ = action.step;
        break;
      case ChainAction::Kind::reverse:
        require(at_hand_ == action.step && action.step + 1 == left_, "reverses another step");
        --left_;
        ++forward_steps;
        at_hand_.reset();
    }
    ++actions;
  }

  template <class Schedule>
  SnapshotMachine& run_all(Schedule schedule) {
    while (const std::optional<ChainAction> action = schedule.next()) run(*action);
    require(left_ == 0, "leaves steps");
    return *this;
  }

  std::uint64_t forward_steps = 0;
  std::uint64_t stores = 0;
  std::uint64_t restores = 0;
  std::uint64_t writes = 0;
  std::uint64_t reads = 0;
  std::uint64_t actions = 0;

 private:
  using Slots = std::vector<std::optional<std::uint32_t>>;
  Slots& slots(ChainAction::Tier tier) { return tiers_[tier == ChainAction::Tier::disk ? 1 : 0]; }
  static void require(bool condition, const char* what) {
    if (!condition) throw std::logic_error(what);
  }

  std::uint32_t left_;  // steps that are not reversed yet
  std::optional<std::uint32_t> at_hand_ = 0;
  Slots tiers_[2];
};

}  // namespace palimpsest::tests
