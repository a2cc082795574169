#pragma once

#include "benchmarks/models.h"

namespace palimpsest::benchmarks {

/// A training loop without its update. Each step records the model anew and reuses the plans and
/// the memory of the step before.
class Loop {
 public:
  explicit Loop(Model model, RunOptions options = {})
      : model_(std::move(model)), options_(std::move(options)) {}

  /// Computes the loss and the gradients of all parameters.
  void step();
  /// Computes the loss only.
  void forward();

  /// The report of the last step.
  const Report& report() const { return report_; }
  Bytes gradient_bytes() const { return gradient_bytes_; }
  /// Bytes at the peak, without the returned gradients.
  Bytes activation_bytes() const { return report_.measured_peak - gradient_bytes_; }

  /// Where the time of all steps went, in seconds per step.
  struct Shares {
    double recording;  ///< the user's model only
    double running;
  };
  Shares shares() const;
  /// Runs one more step and returns the seconds in its kernels, summed over threads.
  double kernels();

 private:
  Model model_;
  RunOptions options_;
  Tape tape_;
  Report report_;
  Bytes gradient_bytes_ = 0;
  Shares totals_{};
  std::int64_t steps_ = 0;
};

}  // namespace palimpsest::benchmarks
