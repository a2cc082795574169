#include "strategy/execution/choice/memory_forecast.h"

#include <iomanip>
#include <ostream>
#include <sstream>
#include <utility>
#include <vector>

#include "autodiff/gradient.h"
#include "strategy/base/batch_parts.h"
#include "strategy/base/parameters.h"
#include "strategy/base/record_model.h"

namespace palimpsest {
namespace {

Bytes bytes_of_all(std::span<const Tensor> tensors) {
  Bytes sum = 0;
  for (const Tensor& tensor : tensors) sum += tensor.bytes();
  return sum;
}

/// Bytes of a tape that holds a part of the batch, with its adjoints.
Bytes metadata_of_part(const Workload& workload, int parts, const Where& where) {
  Tape tape;
  const std::vector<Tensor> batch = parts > 1 ? part_of(workload.batch, 0, parts) : workload.batch;
  const LossAndOutputs made = record_model(workload.model, tape, workload.parameters, batch, where);
  if (workload.training) vjp({&made.loss, 1}, parameters_of(tape), {}, where);
  return tape.metadata_bytes();
}

}  // namespace

MemoryForecast forecast_memory(const ExecutionStrategy& strategy, const Workload& workload,
                               const Optimizer* optimizer, const Rates& rates, Where where) {
  const Estimate step = estimate(strategy, workload, rates, where);
  const int parts = step.replicas * step.micro_batches;
  MemoryForecast made;
  made.parameters = bytes_of_all(workload.parameters);
  made.batch = bytes_of_all(workload.batch);
  if (optimizer != nullptr) made.optimizer_state = optimizer->state_bytes(workload.parameters);
  made.step = step.peak;
  made.metadata = metadata_of_part(workload, parts, where) * parts;
  return made;
}

std::string MemoryForecast::summary() const {
  std::ostringstream text;
  const std::pair<const char*, Bytes> rows[] = {{"parameters", parameters},
                                                {"batch", batch},
                                                {"optimizer state", optimizer_state},
                                                {"step", step},
                                                {"metadata", metadata},
                                                {"total", total()}};
  for (const auto& [name, bytes] : rows) {
    text << std::left << std::setw(17) << name << format_bytes(bytes) << '\n';
  }
  return text.str();
}

std::ostream& operator<<(std::ostream& stream, const MemoryForecast& forecast) {
  return stream << forecast.summary();
}

}  // namespace palimpsest
