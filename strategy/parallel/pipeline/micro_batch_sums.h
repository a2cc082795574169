#pragma once

#include <span>
#include <vector>

#include "autodiff/export.h"
#include "checkpoint/meter.h"
#include "strategy/base/model.h"

namespace palimpsest PALIMPSEST_EXPORT {  // for palimpsest-mpi

/// The losses and gradients of the micro-batches of a batch, and of the whole batch. They are
/// summed as `GradientAccumulator` does.
class MicroBatchSums {
 public:
  /// Parameters have the given types. Gradients are summed for those with `is_made`; the others get
  /// their gradients from elsewhere. `losses` and `examples` are by micro-batch.
  MicroBatchSums(const Meter& meter, std::span<const ValueType> parameters,
                 const std::vector<bool>& is_made, std::span<const Var> losses,
                 std::span<const std::int64_t> examples, LossReduction reduction);

  std::byte* loss_place(std::size_t micro_batch) const { return losses_[micro_batch].raw(); }
  /// Where the gradients of a single micro-batch are written, by parameter. Empty for several
  /// micro-batches, whose gradients are added.
  std::vector<std::byte*> gradients() const;
  /// Adds the gradient of a parameter in a micro-batch. Call it in the order of the micro-batches.
  void add(int micro_batch, std::size_t parameter, std::byte* gradient) const;

  /// Divides and rounds, after everything has been added. Allocates nothing.
  void finish() const;
  /// After `finish`: the gradients by parameter, in the parameter's dtype.
  std::span<const Tensor> totals() const { return totals_; }
  /// The loss that was written to `loss_place`.
  double loss(std::size_t micro_batch) const { return losses_[micro_batch].item(); }
  /// The loss of the batch, from those of its micro-batches.
  double total_loss(std::span<const double> losses) const;

 private:
  std::vector<ValueType> parameters_;
  std::vector<bool> is_made_;
  std::vector<double> weights_;  // by micro-batch, from its number of examples
  double divisor_ = 1;
  std::vector<Tensor> losses_;
  std::vector<Tensor> sums_;
  std::vector<Tensor> totals_;  // the sums, or their rounded copies
};

}  // namespace palimpsest
