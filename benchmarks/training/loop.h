#pragma once

#include "benchmarks/models.h"

namespace palimpsest::benchmarks {

/// A training loop without its update: every step records the model anew. Plans and memory are
/// those of the step before.
class Loop {
 public:
  explicit Loop(Model model, RunOptions options = {})
      : model_(std::move(model)), options_(std::move(options)) {}

  /// The loss and the gradients of all parameters.
  void step();
  /// The loss alone.
  void forward();

  /// Of the last step.
  const Report& report() const { return report_; }
  Bytes gradient_bytes() const { return gradient_bytes_; }
  /// Bytes at the peak that are no returned gradients.
  Bytes activation_bytes() const { return report_.measured_peak - gradient_bytes_; }

  /// Where the time of all steps went, in seconds of one step.
  struct Shares {
    double recording;  ///< the model alone
    double running;
  };
  Shares shares() const;
  /// Seconds that kernels take in a step more, summed over threads.
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
