#pragma once

#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "checkpoint/online_budget.h"
#include "checkpoint/online_eviction.h"
#include "strategy/evaluators/evaluators.h"

namespace palimpsest {

/// The evaluator that `eager` returns when it has a budget. Computes values as they are recorded
/// and keeps the values present on the tape within the budget.
class OnlineEvaluator final : public EngineEvaluator, private OnlineEviction::Host {
 public:
  using EngineEvaluator::EngineEvaluator;

  bool keeps_recorded() const override { return true; }
  void on_record(Tape& tape, std::uint32_t node) override;
  void compute(Tape& tape, std::span<const ValueId> values) override;
  void on_clear(Tape& tape) noexcept override;
  /// Restores dropped values that the user still holds. The run then treats them as leaves.
  RunOptions prepare(Tape& tape, const RunOptions& asked) override;

 private:
  void compute(NodeId node) override;
  void drop(ValueId value) override;
  bool is_held_elsewhere(ValueId value, std::uint32_t values) override;
  bool recover(ValueId root) override;

  static void require_current(Tape& tape, std::span<const ValueId> values);
  template <class F>
  void decide(Tape& tape, F f);
  [[noreturn]] void refuse(const Tape& tape, const OnlineEviction::Shortage& shortage) const;
  bool follows(const Tape& tape) const;
  void start_over(Tape& tape);
  void adopt();
  bool adopt_storage(ValueId root, std::set<const std::byte*>& adopted);

  Tape* tape_ = nullptr;       // null after anything that cannot be followed
  std::uint64_t changes_ = 0;  // of the tape, when it was last inspected
  Graph graph_;
  std::optional<OnlineEviction> eviction_;
  // By root: dropped values that the user still holds.
  std::unordered_map<ValueId, std::weak_ptr<std::byte>> held_;
  std::vector<OnlineRead> reads_;  // of values that had been dropped, since the tape was empty
};

}  // namespace palimpsest
