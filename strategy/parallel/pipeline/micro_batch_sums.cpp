#include "strategy/parallel/pipeline/micro_batch_sums.h"

#include "strategy/run/tape_reading.h"
#include "strategy/training/gradient_sums.h"

namespace palimpsest {
MicroBatchSums::MicroBatchSums(const Meter& meter, std::span<const ValueType> parameters,
                               const std::vector<bool>& is_made, std::span<const Var> losses,
                               std::span<const std::int64_t> examples, LossReduction reduction)
    : parameters_(parameters.begin(), parameters.end()),
      is_made_(is_made),
      weights_(examples.size(), 1) {
  for (const Var& loss : losses) losses_.push_back(new_tensor(meter, loss.type()));
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    ValueType type = parameters[i];
    if (examples.size() > 1 && is_made[i]) type.dtype = compute_dtype(type.dtype);
    sums_.push_back(new_tensor(meter, type));
    const bool is_rounded = type.dtype != parameters[i].dtype;
    totals_.push_back(is_rounded ? new_tensor(meter, parameters[i]) : sums_[i]);
  }
  if (reduction == LossReduction::sum) return;
  const auto first = static_cast<double>(examples[0]);
  std::int64_t all = 0;
  for (std::size_t m = 0; m < examples.size(); ++m) {
    if (m > 0) weights_[m] = static_cast<double>(examples[m]) / first;
    all += examples[m];
  }
  divisor_ = static_cast<double>(all) / first;
}

std::vector<std::byte*> MicroBatchSums::gradients() const {
  std::vector<std::byte*> places;
  if (losses_.size() > 1) return places;
  for (const Tensor& sum : sums_) places.push_back(sum.raw());
  return places;
}

void MicroBatchSums::add(int micro_batch, std::size_t parameter, std::byte* gradient) const {
  const ValueType& type = parameters_[parameter];
  const Tensor given(Buffer(Buffer(), gradient), type.shape, type.dtype);
  if (micro_batch == 0) {
    begin_sum(sums_[parameter], given);
  } else {
    add_to_sum(sums_[parameter], given, weights_[static_cast<std::size_t>(micro_batch)]);
  }
}

void MicroBatchSums::finish() const {
  if (losses_.size() == 1) return;
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    if (!is_made_[i]) continue;
    divide(sums_[i], divisor_);
    if (sums_[i].dtype() != totals_[i].dtype()) begin_sum(totals_[i], sums_[i]);
  }
}

double MicroBatchSums::total_loss(std::span<const double> losses) const {
  if (losses.size() == 1) return losses[0];
  double sum = 0;
  for (std::size_t m = 0; m < losses.size(); ++m) sum += weights_[m] * losses[m];
  return sum / divisor_;
}

}  // namespace palimpsest
