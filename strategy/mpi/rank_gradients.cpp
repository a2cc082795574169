#include "strategy/mpi/rank_gradients.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "strategy/training/gradient_sums.h"

namespace palimpsest {

RankGradients::RankGradients(RankLink& link, std::vector<ValueType> parameters, Bytes bucket_bytes,
                             SumOrder order)
    : link_(link),
      parameters_(std::move(parameters)),
      bucket_bytes_(bucket_bytes),
      order_(order),
      coming_(parameters_.size()),
      rounded_(parameters_.size()),
      added_(parameters_.size()),
      arrived_(parameters_.size()) {
  forget_order();
}

RankGradients::Placed::Placed(RankLink& link, BucketLayout laid_out, SumOrder order)
    : layout(std::move(laid_out)),
      exchange(link, layout, order),
      missing(layout.buckets().size()) {}

std::unique_ptr<RankGradients::Placed> RankGradients::placed(
    std::span<const std::size_t> order) const {
  return std::make_unique<Placed>(link_, BucketLayout(parameters_, order, bucket_bytes_), order_);
}

void RankGradients::forget_order() {
  // The backward part reaches the last layers first.
  std::vector<std::size_t> last_first(parameters_.size());
  std::iota(last_first.rbegin(), last_first.rend(), std::size_t{0});
  placed_ = placed(last_first);
  block_ = nullptr;
  is_laid_out_ = false;
}

void RankGradients::share_order() {
  std::iota(coming_.begin(), coming_.end(), std::size_t{0});
  std::ranges::stable_sort(coming_, {}, [&](std::size_t i) { return arrived_[i]; });
  link_.broadcast(std::as_writable_bytes(std::span(coming_)), 0);
}

void RankGradients::lay_out_prepared() noexcept {
  placed_ = std::move(prepared_);
  block_ = nullptr;
  is_laid_out_ = true;
}

void RankGradients::lay_out(std::span<const std::size_t> order) {
  if (order.size() != parameters_.size()) {
    throw ArgumentError("[ranks] the loaded state is that of " + std::to_string(order.size()) +
                        " parameters, but the step has " + std::to_string(parameters_.size()) +
                        "; load the state of the same model");
  }
  coming_.assign(order.begin(), order.end());
  prepare_order();
  lay_out_prepared();
}

Bytes RankGradients::bytes() const {
  Bytes bytes = placed_->layout.bytes() + placed_->exchange.bytes();
  for (const ValueType& parameter : parameters_) {
    if (is_half(parameter.dtype)) bytes += parameter.bytes();
  }
  return bytes;
}

void RankGradients::begin() {
  if (block_ == nullptr || block_.use_count() > 1) {
    block_ = allocate_buffer(placed_->layout.bytes());
    // The bytes between gradients are added up too.
    std::memset(block_.get(), 0, static_cast<std::size_t>(placed_->layout.bytes()));
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!is_half(parameters_[i].dtype)) continue;
    if (!rounded_[i].defined() || rounded_[i].buffer().use_count() > 1) {
      rounded_[i] = Tensor(parameters_[i].shape, parameters_[i].dtype);
    }
  }
  next_micro_batch();
  arrivals_ = 0;
  for (std::size_t b = 0; b < placed_->missing.size(); ++b) {
    placed_->missing[b] = placed_->layout.buckets()[b].slices;
  }
  placed_->exchange.begin(block_.get(), weights_);
}

Tensor RankGradients::sum(std::size_t parameter) const {
  const BucketLayout::Slice& slice = placed_->layout.slices()[parameter];
  return Tensor(Buffer(block_, block_.get() + slice.offset), slice.type.shape, slice.type.dtype);
}

void RankGradients::add(std::size_t parameter, const Operand& gradient, const Term& term) {
  if (std::exchange(added_[parameter], 1) != 0) return;
  if (gradient.elements() > 0) {
    const Tensor total = sum(parameter);
    const Tensor given(Buffer(std::shared_ptr<void>(), gradient.data), gradient.shape(),
                       gradient.dtype());
    if (term.is_first) {
      begin_sum(total, given);
    } else {
      add_to_sum(total, given, term.weight);
    }
    if (term.is_last && order_ == SumOrder::any) {
      divide(total, weights_.divisor / weights_.weights[static_cast<std::size_t>(link_.rank())]);
    }
  }
  if (!term.is_last) return;
  arrived_[parameter] = arrivals_++;
  const BucketLayout::Slice& slice = placed_->layout.slices()[parameter];
  for (std::size_t b = slice.first_bucket; b < slice.end_bucket; ++b) {
    if (--placed_->missing[b] == 0) placed_->exchange.give(b);
  }
}

void RankGradients::round() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (rounded_[i].defined()) begin_sum(rounded_[i], sum(i));
  }
}

Tensor RankGradients::gradient(std::size_t parameter) const {
  return rounded_[parameter].defined() ? rounded_[parameter] : sum(parameter);
}

}  // namespace palimpsest
