#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "autodiff/operation.h"
#include "strategy/mpi/bucket_exchange.h"

namespace palimpsest {

/// Gradients of this rank, added up over its micro-batches and then over ranks. The buckets that
/// they are sent in are also where they are added up.
class RankGradients {
 public:
  RankGradients(RankLink& link, std::vector<ValueType> parameters, Bytes bucket_bytes,
                SumOrder order);

  /// Sums, gradients rounded to 16 bits, and what the exchange takes.
  Bytes bytes() const;
  int buckets() const { return static_cast<int>(placed_->layout.buckets().size()); }
  /// Of the buckets.
  Bytes sent() const { return placed_->layout.bytes(); }

  /// Begins a step. Sums that somebody still holds stay as they are, others take their place.
  void begin();
  /// Before the first gradient of a step.
  void set_weights(RankWeights weights) { weights_ = std::move(weights); }

  /// What a gradient is to its sum.
  struct Term {
    double weight = 1;     ///< that it is multiplied with, unless it is the first
    bool is_first = true;  ///< of the sum
    bool is_last = true;   ///< so that the sum can go to other ranks
  };
  /// Adds the gradient of a parameter; passes it over if that was added before in this micro-batch.
  /// By several threads at once, for different parameters.
  void add(std::size_t parameter, const Operand& gradient, const Term& term);
  /// What is added from here on is of another micro-batch.
  void next_micro_batch() { added_.assign(added_.size(), 0); }

  BucketExchange& exchange() { return placed_->exchange; }
  /// After a step whose exchange is finished: rounds gradients of 16 bits.
  void round();
  /// Then: of `parameter`, in its dtype.
  Tensor gradient(std::size_t parameter) const;

  /// True where gradients lie in the order in which they come.
  bool is_laid_out() const { return is_laid_out_; }
  /// Tells all ranks in which order they came to rank 0 in the last step. Takes no memory.
  void share_order();
  /// Makes a layout for that order, which the next step may have.
  void prepare_order() { prepared_ = placed(coming_); }
  /// Between steps: takes that layout, as all ranks do.
  void lay_out_prepared() noexcept;
  /// Lays gradients out as at first.
  void forget_order();

 private:
  /// Where gradients lie, and what sends them from there.
  struct Placed {
    Placed(RankLink& link, BucketLayout laid_out, SumOrder order);

    BucketLayout layout;
    BucketExchange exchange;
    std::vector<std::atomic<int>> missing;  // by bucket: sums that are not complete
  };

  std::unique_ptr<Placed> placed(std::span<const std::size_t> order) const;
  Tensor sum(std::size_t parameter) const;

  RankLink& link_;
  std::vector<ValueType> parameters_;
  Bytes bucket_bytes_;
  SumOrder order_;
  std::unique_ptr<Placed> placed_;
  std::unique_ptr<Placed> prepared_;
  bool is_laid_out_ = false;
  std::vector<std::size_t> coming_;  // parameters, in the order shared last
  Buffer block_;
  std::vector<Tensor> rounded_;  // by parameter, those of 16 bits
  RankWeights weights_;
  std::vector<char> added_;             // by parameter, in the micro-batch at hand
  std::vector<std::uint32_t> arrived_;  // by parameter
  std::atomic<std::uint32_t> arrivals_ = 0;
};

}  // namespace palimpsest
