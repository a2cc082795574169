#pragma once

#include <string>

#include "strategy/evaluators/evaluators.h"

namespace palimpsest {

/// Computes a tape stage by stage: what `hybrid` makes.
class HybridEvaluator final : public EngineEvaluator {
 public:
  HybridEvaluator(RunOptions options, StageLimits limits)
      : EngineEvaluator(std::move(options)), limits_(limits) {}

  void on_record(Tape& tape, std::uint32_t node) override;
  void on_clear(Tape& tape) noexcept override;

 private:
  void begin_stage(const Tape& tape, NodeId first);
  /// Computes what the nodes from `begin` to `end` make if no other one of them reads any of it,
  /// and, where the budget allows that, what they read of earlier stages: what one stage reads, the
  /// next one may.
  void end_stage(Tape& tape, NodeId begin, NodeId end);
  /// Computes both or, where the budget is too small for that, the ends alone. Other values stay
  /// present where it allows that. Throws `BudgetError` where the ends do not fit.
  void compute_beside_others(Tape& tape, std::span<const ValueId> ends,
                             std::span<const ValueId> read);

  StageLimits limits_;
  // Of the stage that is being recorded.
  const Tape* tape_ = nullptr;
  NodeId first_ = 0;
  NodeId next_ = 0;  // behind its last node
  std::string name_;
  std::uint32_t nodes_ = 0;
  Bytes bytes_ = 0;
};

}  // namespace palimpsest
