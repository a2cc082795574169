#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "autodiff/operation.h"
#include "strategy/mpi/bucket_exchange.h"

namespace palimpsest {

/// Gradients of this rank, added up over its micro-batches and then over ranks. They are added up
/// in the buckets that they are sent in.
class RankGradients {
 public:
  RankGradients(RankLink& link, std::vector<ValueType> parameters, Bytes bucket_bytes,
                SumOrder order);

  /// Bytes of sums, of gradients rounded to 16 bits, and of the exchange.
  Bytes bytes() const;
  int buckets() const { return static_cast<int>(placed_->layout.buckets().size()); }
  /// Bytes of all buckets.
  Bytes sent() const { return placed_->layout.bytes(); }

  /// Begins a step. Sums that a user still holds stay unchanged; new storage replaces them.
  void begin();
  /// Call before the first gradient of a step.
  void set_weights(RankWeights weights) { weights_ = std::move(weights); }

  /// How a gradient enters its sum.
  struct Term {
    double weight = 1;     ///< its factor, unless it is the first
    bool is_first = true;  ///< begins the sum
    bool is_last = true;   ///< completes the sum, which can then go to other ranks
  };
  /// Adds the gradient of a parameter. Ignores it if that was added before in this micro-batch.
  /// Several threads may call it in parallel, for different parameters.
  void add(std::size_t parameter, const Operand& gradient, const Term& term);
  /// Later calls of `add` belong to another micro-batch.
  void next_micro_batch() { added_.assign(added_.size(), 0); }

  BucketExchange& exchange() { return placed_->exchange; }
  /// After a step whose exchange is finished: rounds the gradients of 16-bit parameters.
  void round();
  /// After `round`: the gradient of `parameter`, in its dtype.
  Tensor gradient(std::size_t parameter) const;

  /// True where gradients are stored in the order in which they become final.
  bool is_laid_out() const { return is_laid_out_; }
  /// Tells all ranks in which order gradients became final on rank 0 in the last step. Allocates
  /// nothing.
  void share_order();
  /// Makes a layout for that order, for the next step.
  void prepare_order() { prepared_ = placed(coming_); }
  /// Between steps, on all ranks: switches to the prepared layout.
  void lay_out_prepared() noexcept;
  /// The parameters in the order in which they are stored; empty before that is known.
  std::span<const std::size_t> order() const {
    return is_laid_out_ ? std::span<const std::size_t>(coming_) : std::span<const std::size_t>();
  }
  /// Stores gradients in the order of another run. Throws `ArgumentError` unless it has one place
  /// for each parameter.
  void lay_out(std::span<const std::size_t> order);
  /// Returns to the initial layout.
  void forget_order();

 private:
  /// A layout, and the exchange that sends it.
  struct Placed {
    Placed(RankLink& link, BucketLayout laid_out, SumOrder order);

    BucketLayout layout;
    BucketExchange exchange;
    std::vector<std::atomic<int>> missing;  // by bucket: number of incomplete sums
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
  std::vector<std::size_t> coming_;  // parameters in the order shared last
  Buffer block_;
  std::vector<Tensor> rounded_;  // by parameter, for those of 16 bits
  RankWeights weights_;
  std::vector<char> added_;             // by parameter, in the current micro-batch
  std::vector<std::uint32_t> arrived_;  // by parameter
  std::atomic<std::uint32_t> arrivals_ = 0;
};

}  // namespace palimpsest
