#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "strategy/evaluators/evaluators.h"
#include "strategy/execution/precision/translation.h"

namespace palimpsest {

/// Has the tapes it is given computed in another precision, on tapes of its own: what `precise`
/// makes.
class PreciseEvaluator final : public EngineEvaluator {
 public:
  PreciseEvaluator(const Precision& precision, std::shared_ptr<EngineEvaluator> inner);

  void on_record(Tape& tape, std::uint32_t node) override;
  void compute(Tape& tape, std::uint32_t value) override;
  void on_clear(Tape& tape) noexcept override;
  InnerRewrite inner() const override { return rewrite_in(precision_); }
  std::vector<Var> computed_for(Tape& tape, std::span<const Var> values) override;
  std::string precision() const override { return precision_.summary(); }
  void set_memory_budget(Bytes budget) override;

 private:
  /// What is computed for one tape.
  struct Computed {
    Translation translation;
    std::vector<ValueId> lent = {};  // to the tape, because they were asked for

    Computed(const Precision& precision, const std::shared_ptr<Evaluator>& inner)
        : translation(precision, inner) {}
  };

  /// What was present before the evaluator was given to the tape is dropped: it may have another
  /// precision.
  Computed& computed(Tape& tape);
  static void take_back(Tape& tape, Computed& computed);

  Precision precision_;
  std::shared_ptr<EngineEvaluator> inner_;
  std::unordered_map<const Tape*, std::unique_ptr<Computed>> computed_;
  std::unique_ptr<Computed> spare_;  // keeps its allocations for the next tape
};

}  // namespace palimpsest
