#pragma once

#include <list>
#include <memory>

#include "strategy/backward.h"
#include "strategy/evaluators/evaluators.h"
#include "strategy/parallel/devices/device_runner.h"
#include "strategy/parallel/partition/pieces_forecast.h"

namespace palimpsest {

/// Runs programs on devices, as `Execution` does with `ParallelMode::model_parallel`. A program
/// that was recorded before is neither differentiated nor planned again, unless it holds users'
/// operations or loops.
class ModelParallel {
 public:
  explicit ModelParallel(const ExecutionStrategy& strategy);

  /// The evaluator for tapes that losses and values are recorded on.
  const std::shared_ptr<EngineEvaluator>& evaluator() const { return evaluator_; }

  /// The gradients of a loss with auxiliary outputs, with the same bits as on one device. No value
  /// stays present. Throws as `Execution::gradients`, and `ArgumentError` for a model that looks at
  /// values while it records.
  Gradients gradients(const LossAndOutputs& values);
  /// The tensor of a value. Throws as `gradients`.
  Tensor value(const Var& value, Report& report);
  /// Forecasts `gradients` or `value` without computing anything. Throws as they do.
  PiecesForecast forecast(const LossAndOutputs& values, bool with_gradients);
  /// Returns the memory kept for the next run to the system.
  void release_memory() { runner_.release_memory(); }

 private:
  struct Known {
    RecordedProgram program;
    bool with_gradients = false;
    std::shared_ptr<const DevicePlan> plan;
    bool reused = false;
    double planning_seconds = 0;
  };

  /// Finds or plans the program of `computed`, the computed counterpart of `values`.
  Known& find_or_plan(const LossAndOutputs& values, const LossAndOutputs& computed,
                      bool with_gradients);
  Report run(const Known& known, const Tape& tape, const DeviceOutputs& outputs,
             const Meter& meter);

  ExecutionStrategy strategy_;
  int threads_;
  int threads_of_device_;
  std::shared_ptr<EngineEvaluator> evaluator_;
  PiecePrograms programs_;
  DeviceRunner runner_;
  std::list<Known> known_;  // most recently used first
};

}  // namespace palimpsest
