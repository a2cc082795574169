#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "strategy/evaluators/evaluators.h"

namespace palimpsest {

/// An evaluator that lists the programs of loops and checkpoints that are recorded on its tapes. It
/// leaves everything else to another evaluator.
class InnerPrograms final : public EngineEvaluator {
 public:
  explicit InnerPrograms(std::shared_ptr<EngineEvaluator> evaluator)
      : EngineEvaluator(evaluator->options(), evaluator->shared_engine()),
        evaluator_(std::move(evaluator)) {}

  /// The programs so far, as they were recorded. Later ones are not listed: a loop that is recorded
  /// again in each run would add its steps without end.
  std::vector<InnerProgram> take() {
    list_->is_open = false;
    return std::move(list_->programs);
  }

  InnerRewrite inner() const override {
    return [list = list_, rewrite = evaluator_->inner()](InnerProgram recorded) {
      if (list->is_open) list->programs.push_back(recorded);
      return rewrite != nullptr ? rewrite(std::move(recorded)) : recorded;
    };
  }

  void on_record(Tape& tape, std::uint32_t node) override { evaluator_->on_record(tape, node); }
  void compute(Tape& tape, std::span<const ValueId> values) override {
    evaluator_->compute(tape, values);
  }
  Buffer room_beside(Tape& tape, Bytes held,
                     const std::function<Bytes(Bytes budget)>& plan) override {
    return evaluator_->room_beside(tape, held, plan);
  }
  void on_clear(Tape& tape) noexcept override { evaluator_->on_clear(tape); }
  bool keeps_recorded() const override { return evaluator_->keeps_recorded(); }
  RunOptions prepare(Tape& tape, const RunOptions& asked) override {
    return evaluator_->prepare(tape, asked);
  }
  std::vector<Var> computed_for(Tape& tape, std::span<const Var> values) override {
    return evaluator_->computed_for(tape, values);
  }
  std::shared_ptr<const void> hold_temporary(Tape& tape) override {
    return evaluator_->hold_temporary(tape);
  }
  std::string precision() const override { return evaluator_->precision(); }

 private:
  struct List {
    std::vector<InnerProgram> programs = {};
    bool is_open = true;
  };
  std::shared_ptr<EngineEvaluator> evaluator_;
  std::shared_ptr<List> list_ = std::make_shared<List>();
};

}  // namespace palimpsest
