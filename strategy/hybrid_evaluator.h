#pragma once

#include <string>

#include "strategy/evaluators.h"

namespace palimpsest {

/// Computes a tape stage by stage: what `hybrid` makes.
class HybridEvaluator final : public EngineEvaluator {
 public:
  HybridEvaluator(RunOptions options, StageLimits limits)
      : EngineEvaluator(std::move(options)), limits_(limits) {}

  void on_record(Tape& tape, std::uint32_t node) override;
  void on_clear(Tape& tape) noexcept override;

 private:
  /// Computes what nodes of the stage, those before `end`, make if no other one reads any of it.
  void end_stage(Tape& tape, NodeId end);

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
