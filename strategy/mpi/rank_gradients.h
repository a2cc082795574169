#pragma once

#include <atomic>
#include <optional>
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

  /// Sums, gradients rounded to 16 bits, and what is received.
  Bytes bytes() const;
  int buckets() const { return static_cast<int>(layout_.buckets().size()); }
  /// Of the buckets.
  Bytes sent() const { return layout_.bytes(); }

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

  BucketExchange& exchange() { return *exchange_; }
  /// After a step whose exchange is finished: rounds gradients of 16 bits.
  void round();
  /// Then: of `parameter`, in its dtype.
  Tensor gradient(std::size_t parameter) const;

  /// Parameters in the order in which their gradients came in the last step.
  std::vector<std::size_t> arrivals() const;
  /// Lays gradients out for such an order, between steps; all ranks for the same.
  void lay_out(std::span<const std::size_t> order);
  bool is_laid_out() const { return is_laid_out_; }
  /// Lays them out as at first.
  void forget_order();

 private:
  Tensor sum(std::size_t parameter) const;

  RankLink& link_;
  std::vector<ValueType> parameters_;
  Bytes bucket_bytes_;
  SumOrder order_;
  BucketLayout layout_;
  bool is_laid_out_ = false;
  std::optional<BucketExchange> exchange_;
  Buffer block_;
  std::vector<Tensor> rounded_;  // by parameter, those of 16 bits
  RankWeights weights_;
  std::vector<char> added_;             // by parameter, in the micro-batch at hand
  std::vector<std::uint32_t> arrived_;  // by parameter
  std::atomic<std::uint32_t> arrivals_ = 0;
  std::vector<std::atomic<int>> missing_;  // by bucket: sums that are not complete
};

}  // namespace palimpsest
