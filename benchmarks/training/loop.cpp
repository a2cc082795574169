#include "benchmarks/training/loop.h"

#include "benchmarks/turns.h"

namespace palimpsest::benchmarks {

void Loop::step() {
  const double start = now();
  tape_.clear();
  const Var loss = model_.record_loss(tape_);
  totals_.recording += now() - start;
  const Gradients gradients = backward(loss, options_);
  report_ = gradients.report();
  gradient_bytes_ = 0;
  for (const auto& entry : gradients) gradient_bytes_ += entry.gradient.bytes();
  totals_.running += report_.run_seconds;
  totals_.kernels += report_.kernel_seconds;
  ++steps_;
}

void Loop::forward() {
  tape_.clear();
  const Var loss = model_.record_loss(tape_);
  evaluate({&loss, 1}, options_);
}

Loop::Shares Loop::shares() const {
  const auto count = static_cast<double>(steps_);
  return {totals_.recording / count, totals_.running / count, totals_.kernels / count};
}

}  // namespace palimpsest::benchmarks
