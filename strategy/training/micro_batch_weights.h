#pragma once

#include <cstdint>
#include <vector>

#include "strategy/base/loss_counts.h"
#include "strategy/training/accumulator.h"

namespace palimpsest {

/// The weights of the micro-batches of an update.
class MicroBatchWeights {
 public:
  explicit MicroBatchWeights(GradientNormalization normalization, int steps)
      : normalization_(normalization), steps_(steps) {}

  /// Throws `ArgumentError` where no one weight is right for the terms of a micro-batch's loss.
  void require_one_weight(const LossCounts& counts, std::int64_t examples) const;
  /// What a micro-batch counts for: targets, examples, or 1.
  double units_of(const LossCounts& counts, std::int64_t examples) const;
  /// The factor of a micro-batch that is added next.
  double weight_of(double units) const;
  /// Adds a micro-batch.
  void add(const LossCounts& counts, std::int64_t examples);
  /// What the sum of the micro-batches so far is divided by.
  double divisor() const;
  /// False where every micro-batch so far has weight 0.
  bool has_weight() const { return units_ > 0; }
  void reset();

 private:
  GradientNormalization normalization_;
  int steps_;
  bool has_any_ = false;        // micro-batches
  std::vector<double> shares_;  // counts, perhaps with examples, of a micro-batch with targets
  double units_ = 0;
  double first_units_ = 0;  // of the first micro-batch with a weight
};

}  // namespace palimpsest
