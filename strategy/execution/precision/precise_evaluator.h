#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "strategy/evaluators/evaluators.h"
#include "strategy/execution/precision/translation.h"

namespace palimpsest {

/// The evaluator that `precise` returns. It computes tapes in another precision, on tapes of its
/// own.
class PreciseEvaluator final : public EngineEvaluator {
 public:
  PreciseEvaluator(const Precision& precision, std::shared_ptr<EngineEvaluator> inner);

  void on_record(Tape& tape, std::uint32_t node) override;
  void compute(Tape& tape, std::span<const ValueId> values) override;
  Buffer room_beside(Tape& tape, Bytes held,
                     const std::function<Bytes(Bytes budget)>& plan) override;
  void on_clear(Tape& tape) noexcept override;
  InnerRewrite inner() const override { return rewrite_in(precision_); }
  std::vector<Var> computed_for(Tape& tape, std::span<const Var> values) override;
  std::shared_ptr<const void> hold_temporary(Tape& tape) override;
  std::string precision() const override { return precision_.summary(); }
  void set_memory_budget(Bytes budget) override;

 private:
  /// The translation of one tape.
  struct Computed {
    Translation translation;
    std::vector<ValueId> lent = {};  // to the tape, because they were asked for

    Computed(const Precision& precision, const std::shared_ptr<Evaluator>& inner)
        : translation(precision, inner) {}
  };

  /// Drops the values that were present before the tape got this evaluator: they may have another
  /// precision.
  Computed& computed(Tape& tape);
  static void take_back(Tape& tape, Computed& computed);

  Precision precision_;
  std::shared_ptr<EngineEvaluator> inner_;
  std::unordered_map<const Tape*, std::unique_ptr<Computed>> computed_;
  std::unique_ptr<Computed> spare_;  // keeps its allocations for the next tape
};

}  // namespace palimpsest
