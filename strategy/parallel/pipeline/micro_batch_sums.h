#pragma once

#include <span>
#include <vector>

#include "checkpoint/meter.h"
#include "strategy/base/model.h"

namespace palimpsest {

/// Losses and gradients of the micro-batches of a batch, and of the whole, as `GradientAccumulator`
/// makes them of parts of a batch.
class MicroBatchSums {
 public:
  /// Of parameters of such types; those are summed for which `is_made` holds, and others get their
  /// gradients from elsewhere. Micro-batches have such losses, and so many examples.
  MicroBatchSums(const Meter& meter, std::span<const ValueType> parameters,
                 const std::vector<bool>& is_made, std::span<const Var> losses,
                 std::span<const std::int64_t> examples, LossReduction reduction);

  std::byte* loss_place(std::size_t micro_batch) const { return losses_[micro_batch].raw(); }
  /// Where the gradients of an only micro-batch go, by parameter; nowhere of several, which are
  /// added.
  std::vector<std::byte*> gradients() const;
  /// Adds the gradient of a parameter in a micro-batch, in the order of these.
  void add(int micro_batch, std::size_t parameter, std::byte* gradient) const;

  /// When all are added: divides and rounds. Takes no more memory.
  void finish() const;
  /// Then: by parameter, in its dtype.
  std::span<const Tensor> totals() const { return totals_; }
  /// What was made at `loss_place`.
  double loss(std::size_t micro_batch) const { return losses_[micro_batch].item(); }
  /// The loss of the batch, of those of its micro-batches.
  double total_loss(std::span<const double> losses) const;

 private:
  std::vector<ValueType> parameters_;
  std::vector<bool> is_made_;
  std::vector<double> weights_;  // by micro-batch, as those of examples
  double divisor_ = 1;
  std::vector<Tensor> losses_;
  std::vector<Tensor> sums_;
  std::vector<Tensor> totals_;  // the sums, but for those that are rounded
};

}  // namespace palimpsest
