#pragma once

#include <string>

#include "strategy/evaluators/evaluators.h"

namespace palimpsest {

/// The evaluator that `hybrid` returns. Computes a tape stage by stage.
class HybridEvaluator final : public EngineEvaluator {
 public:
  HybridEvaluator(RunOptions options, StageLimits limits)
      : EngineEvaluator(std::move(options)), limits_(limits) {}

  void on_record(Tape& tape, std::uint32_t node) override;
  void on_clear(Tape& tape) noexcept override;

 private:
  void begin_stage(const Tape& tape, NodeId first);
  /// Computes the stage of nodes [`begin`, `end`): the outputs of nodes that no node of the stage
  /// reads. If the budget allows, also computes the missing values of earlier stages that the stage
  /// reads, since the next stage may read them too.
  void end_stage(Tape& tape, NodeId begin, NodeId end);
  /// Computes `ends` and `read`, or only `ends` if the budget is too small for both. Other values
  /// stay present if the budget allows. Throws `BudgetError` if `ends` do not fit.
  void compute_beside_others(Tape& tape, std::span<const ValueId> ends,
                             std::span<const ValueId> read);

  StageLimits limits_;
  // The stage being recorded.
  const Tape* tape_ = nullptr;
  NodeId first_ = 0;
  NodeId next_ = 0;  // after its last node
  std::string name_;
  std::uint32_t nodes_ = 0;
  Bytes bytes_ = 0;
};

}  // namespace palimpsest
