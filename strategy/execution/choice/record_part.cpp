#include "strategy/execution/choice/record_part.h"

#include "strategy/base/batch_parts.h"
#include "strategy/base/parameters.h"
#include "strategy/base/record_model.h"
#include "strategy/base/updates.h"
#include "strategy/training/loss_scaler.h"

namespace palimpsest {

LossAndOutputs record_loss_of_part(Tape& tape, int parts, std::span<const Tensor> batch,
                                   const LocatedWorkload& workload, CountedMeans& means) {
  if (parts == 1) {
    return record_model(workload.model, tape, workload.parameters, batch, workload.where);
  }
  const CountedMeans::Recording counting(tape, means);
  LossAndOutputs made =
      record_model(workload.model, tape, workload.parameters, batch, workload.where);
  means.counts();  // throws
  require_all_given(tape, workload.parameters, workload.where);
  return made;
}

LossAndOutputs record_part(Replica& replica, const ExecutionStrategy& strategy, const BatchCut& cut,
                           int part, const LocatedWorkload& workload, CountedMeans& means) {
  const std::vector<Tensor> batch =
      cut.parts() > 1 ? part_of(workload.batch, part, cut.parts()) : workload.batch;
  const Tape count;
  if (!workload.training) {
    Tape& tape = replica.tape_for_values(0, count);
    const Var value =
        record_model(workload.model, tape, workload.parameters, batch, workload.where).loss;
    if (cut.replicas > 1 && value.shape().rank() == 0) {
      throw ArgumentError(
          "estimate",
          "values of replicas are concatenated along their first axis, but this value, " +
              to_string(value.type()) +
              ", has no axis; use a strategy without replicas, or a model whose value has the "
              "examples along its first axis",
          where_recorded(value));
    }
    return value;
  }
  LossAndOutputs made =
      record_loss_of_part(replica.tape(0, 0, count), cut.parts(), batch, workload, means);
  const bool is_scaled = strategy.precision && strategy.precision->needs_scaling();
  if (is_scaled) made.loss = LossScaler().scale(made.loss, workload.where);
  append_updates(made);
  made.loss.tape().forget_updates();
  return made;
}

Forecast forecast_part(const ExecutionStrategy& strategy, const BatchCut& cut, int part,
                       const LocatedWorkload& workload, const Rates& rates,
                       std::optional<BudgetError>& of_counting) {
  Replica replica(strategy, cut.options, cut.replicas, cut.sums);
  BatchCounts counts(strategy);
  counts.begin(1);
  const LossAndOutputs made = record_part(replica, strategy, cut, part, workload, counts.of(0));
  counts.note_needs(0, made);
  of_counting = larger_of(of_counting, counts.refusal());
  return workload.training ? replica.forecast(made, rates)
                           : replica.forecast_value(made.loss, rates);
}

}  // namespace palimpsest
