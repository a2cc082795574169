#pragma once

#include <span>
#include <vector>

#include "autodiff/export.h"
#include "autodiff/tensor.h"
#include "strategy/base/loss_and_outputs.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// What the means of a loss divide by, if it has means over counted targets: `cross_entropy` and
/// `nll` with an `ignore_index`, and `weighted_mean`.
struct LossCounts {
  /// The number of targets or the weight, by mean, in the order of recording.
  std::vector<double> counts = {};
  /// Whether the loss has other terms that depend on examples. Terms that depend on parameters and
  /// single numbers alone, such as penalties, are not among them.
  bool has_other_terms = false;

  bool empty() const { return counts.empty(); }
};

/// Whether a loss has terms as in `LossCounts::has_other_terms`. A checkpoint counts as one of
/// them, since what is inside is not known.
bool has_other_terms(const Var& loss);

/// The counts of a recorded loss, as values of its tape.
class RecordedCounts {
 public:
  /// Finds the counts that the loss depends on, by the marks of `divide_by_count`.
  explicit RecordedCounts(const Var& loss);

  bool empty() const { return counts_.empty(); }
  std::size_t size() const { return counts_.size(); }
  bool has_other_terms() const { return has_other_terms_; }
  /// Appends the counts to the outputs.
  void append_to(LossAndOutputs& values) const;
  /// The counts that a run has made of them.
  LossCounts read(std::span<const Tensor> made) const;

 private:
  std::vector<Var> counts_;
  bool has_other_terms_ = false;
};

}  // namespace palimpsest
