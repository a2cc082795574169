#pragma once

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <vector>

#include "checkpoint/chains/action.h"
#include "checkpoint/chains/periodic.h"

namespace palimpsest::tests {

/// Executes the actions of a snapshot schedule, counts them, and rejects those that break the
/// rules.
class SnapshotMachine {
 public:
  SnapshotMachine(std::uint32_t steps, std::uint32_t memory_slots)
      : left_(steps), runs_(steps + 1ull) {
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
        require(!tier[action.slot] || *tier[action.slot] >= left_, "in_place what it needs");
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
        run_to(action.step);
        break;
      case ChainAction::Kind::reverse:
        require(at_hand_ == action.step && action.step + 1 == left_, "reverses another step");
        run_to(left_);
        --left_;
        at_hand_.reset();
    }
    ++actions;
  }

  /// Runs all steps as a chain whose end is not known in advance. Dropped states are overwritten.
  SnapshotMachine& sweep(OnlineSnapshots& snapshots) {
    auto& memory = slots(ChainAction::Tier::memory);
    while (*at_hand_ < left_) {
      if (const std::optional<ChainAction> store = snapshots.before_step()) {
        require(store->kind == ChainAction::Kind::store, "does not store");
        require(store->slot < memory.size(), "has too many snapshots");
        memory[store->slot].reset();
        run(*store);
      }
      run_to(*at_hand_ + 1);
    }
    require(snapshots.steps() == left_, "counts other steps");
    for (const HeldState& held : snapshots.held()) {
      require(memory[held.slot] == held.step, "is not held");
    }
    const auto empty = std::count(memory.begin(), memory.end(), std::nullopt);
    require(snapshots.held().size() + static_cast<std::size_t>(empty) == memory.size(),
            "holds more than it says");
    return *this;
  }

  /// Like `sweep` above, with two tiers. Memory slots are reused for the next piece of the chain.
  SnapshotMachine& sweep(PeriodicSnapshots& snapshots) {
    auto& memory = slots(ChainAction::Tier::memory);
    while (*at_hand_ < left_) {
      for (const ChainAction& store : snapshots.before_step()) {
        if (store.tier == ChainAction::Tier::memory) memory.at(store.slot).reset();
        if (store.tier == ChainAction::Tier::disk) memory.assign(memory.size(), std::nullopt);
        run(store);
      }
      run_to(*at_hand_ + 1);
    }
    return *this;
  }

  /// How often the most repeated step was run, including its run with the tape.
  std::int64_t most_runs() const {
    std::int64_t most = 0;
    std::int64_t runs = 0;
    for (const std::int64_t change : runs_) most = std::max(most, runs += change);
    return most;
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
  void run_to(std::uint32_t step) {
    forward_steps += step - *at_hand_;
    ++runs_[*at_hand_];
    --runs_[step];
    at_hand_ = step;
  }
  static void require(bool condition, const char* what) {
    if (!condition) throw std::logic_error(what);
  }

  std::uint32_t left_;              // number of steps not reversed yet
  std::vector<std::int64_t> runs_;  // by step, as the difference to the step before
  std::optional<std::uint32_t> at_hand_ = 0;
  Slots tiers_[2];
};

}  // namespace palimpsest::tests
