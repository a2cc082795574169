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
  ++steps_;
}

void Loop::forward() {
  tape_.clear();
  const Var loss = model_.record_loss(tape_);
  evaluate({&loss, 1}, options_);
}

double Loop::kernels() {
  RunOptions profiled = options_;
  profiled.profile = true;
  tape_.clear();
  return backward(model_.record_loss(tape_), profiled).report().kernel_seconds;
}

Loop::Shares Loop::shares() const {
  const auto count = static_cast<double>(steps_);
  return {totals_.recording / count, totals_.running / count};
}

}  // namespace palimpsest::benchmarks
