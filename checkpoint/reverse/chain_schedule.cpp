#include "checkpoint/reverse/chain_schedule.h"

#include <type_traits>
#include <utility>

#include "checkpoint/chains/binomial.h"
#include "checkpoint/chains/online.h"
#include "checkpoint/chains/periodic.h"
#include "checkpoint/chains/two_tier.h"

namespace palimpsest {
namespace {

std::uint32_t narrow_units(std::uint64_t units) { return static_cast<std::uint32_t>(units); }

class KnownInMemory final : public ChainSchedule {
 public:
  KnownInMemory(std::uint32_t units, std::uint32_t snapshots)
      : forward_units_(binomial_forward_steps(units, snapshots)), schedule_(units, snapshots) {}
  std::optional<ChainAction> next() override { return schedule_.next(); }
  std::uint64_t forward_units() const override { return forward_units_; }

 private:
  std::uint64_t forward_units_;
  BinomialSchedule schedule_;
};

class KnownOnTwoTiers final : public ChainSchedule {
 public:
  KnownOnTwoTiers(std::uint32_t units, std::uint32_t snapshots, DiskCosts costs)
      : schedule_(units, snapshots, costs) {}
  std::optional<ChainAction> next() override { return schedule_.next(); }
  std::uint64_t forward_units() const override { return schedule_.forward_steps(); }
  std::uint64_t writes() const override { return schedule_.writes(); }
  std::uint64_t reads() const override { return schedule_.reads(); }

 private:
  TwoTierSchedule schedule_;
};

class Online final : public ChainSchedule {
 public:
  explicit Online(std::uint32_t snapshots) : sweep_(snapshots) {}
  std::span<const ChainAction> before_step() override {
    const std::optional<ChainAction> store = sweep_.before_step();
    if (!store) return {};
    store_ = *store;
    return {&store_, 1};
  }
  void end_sweep() override { reversal_.emplace(sweep_); }
  std::optional<ChainAction> next() override { return reversal_->next(); }
  std::uint64_t forward_units() const override { return reversal_->forward_steps(); }

 private:
  OnlineSnapshots sweep_;
  ChainAction store_{};
  std::optional<OnlineReversal> reversal_;
};

class Periodic final : public ChainSchedule {
 public:
  Periodic(std::uint32_t snapshots, DiskCosts costs) : sweep_(snapshots, costs) {}
  std::span<const ChainAction> before_step() override {
    const std::span<const ChainAction> stores = sweep_.before_step();
    for (const ChainAction& store : stores) writes_ += store.tier == ChainAction::Tier::disk;
    return stores;
  }
  void end_sweep() override { reversal_.emplace(sweep_); }
  std::optional<ChainAction> next() override { return reversal_->next(); }
  std::uint64_t forward_units() const override { return reversal_->forward_steps(); }
  std::uint64_t writes() const override { return writes_; }
  std::uint64_t reads() const override { return writes_; }

 private:
  PeriodicSnapshots sweep_;
  std::optional<PeriodicReversal> reversal_;
  std::uint64_t writes_ = 0;
};

}  // namespace

std::unique_ptr<ChainSchedule> make_chain_schedule(std::optional<std::uint64_t> units,
                                                   std::uint32_t snapshots,
                                                   const std::optional<DiskCosts>& costs) {
  if (!units) {
    if (costs) return std::make_unique<Periodic>(snapshots, *costs);
    return std::make_unique<Online>(snapshots);
  }
  const std::uint32_t all = narrow_units(*units + 1);
  if (costs && snapshots < *units) {
    return std::make_unique<KnownOnTwoTiers>(all, snapshots, *costs);
  }
  return std::make_unique<KnownInMemory>(all, snapshots);
}

}  // namespace palimpsest
