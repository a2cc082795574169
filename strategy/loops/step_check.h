#pragma once

#include <cstdint>
#include <span>

#include "strategy/loops/loop.h"
#include "strategy/run/buffer_runner.h"

namespace palimpsest {

/// Calls `f`. If that finds an anomaly, the error also names the step and the loop.
template <class F>
auto naming_step(const Loop& loop, std::uint32_t step, F f) {
  try {
    return f();
  } catch (const AnomalyError& error) {
    throw AnomalyError(std::string(error.what()) + ", in step " + std::to_string(step) +
                       " of the loop [" + std::string(loop.body().name()) + "] (recorded at " +
                       to_string(loop.body().where) + ")");
  }
}

/// Finds the first anomaly of a loop whose run looks for anomalies. It runs each step node by node
/// before the loop does, because the program of a step is fused and writes over its arguments. It
/// takes memory for one step that no budget counts.
class StepCheck {
 public:
  StepCheck(const Loop& loop, const StepPrograms& programs, int threads);

  /// Throws `AnomalyError` that names the operation, its line and the step.
  void run(std::uint32_t step, std::span<std::byte* const> arguments, Round round);

 private:
  const Loop& loop_;
  BufferProgramPtr program_;
  Buffer memory_;
  std::vector<Buffer> results_;
  Addresses result_addresses_;
  BufferRunner runner_;
};

}  // namespace palimpsest
