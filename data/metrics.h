#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "autodiff/default_options.h"
#include "autodiff/export.h"
#include "autodiff/tensor.h"

namespace palimpsest PALIMPSEST_EXPORT {

// Measures of a model over many batches. They are values that can be copied: `add` takes a batch,
// `value` returns the measure of all batches so far, `reset` forgets them. Sums are f64, in the
// order of the elements, so bits do not depend on the number of threads. Without anything added,
// `value` is NaN.
//
// Logits are floating tensors (…, classes), and labels integer tensors (…) with numbers of
// classes. `add` throws `ShapeError`, `DTypeError`, and `ArgumentError` for a label that is no
// class. It adds nothing then.

/// The weighted mean of numbers, such as losses of batches of different sizes.
class WeightedMean {
 public:
  /// Throws `ArgumentError` for a negative weight.
  void add(double value, double weight = 1);
  /// Adds each element with weight 1.
  void add(const Tensor& values);
  /// Adds each element with the element of `weights` at its place.
  void add(const Tensor& values, const Tensor& weights);

  /// The mean of what was added since the last `reset`, and the sum of its weights.
  double value() const { return sum_ / weight_; }
  double weight() const { return weight_; }
  /// Forgets everything, as at the begin of an epoch.
  void reset() { *this = {}; }

 private:
  double sum_ = 0;
  double weight_ = 0;
};

struct AccuracyOptions {
  /// An answer is right if the label's logit is among this many largest ones. The first of equal
  /// logits counts as the largest.
  std::int64_t top = 1;
  /// Examples with this label do not count.
  std::optional<std::int64_t> ignore_index = std::nullopt;
};

/// The share of right answers. A NaN counts as the largest logit, and the answer is never right if
/// the label's own logit is NaN.
class Accuracy {
 public:
  /// Throws `ArgumentError` unless `top` is positive.
  explicit Accuracy(AccuracyOptions options = {});
  explicit Accuracy(DefaultOptions) : Accuracy() {}
  void add(const Tensor& logits, const Tensor& labels);

  /// The share of right answers, and the number of examples, since the last `reset`.
  double value() const { return static_cast<double>(right_) / static_cast<double>(examples_); }
  std::int64_t examples() const { return examples_; }
  /// Forgets all examples.
  void reset() { right_ = examples_ = 0; }

 private:
  AccuracyOptions options_;
  std::int64_t right_ = 0;
  std::int64_t examples_ = 0;
};

/// How often examples of each class get each answer.
class ConfusionMatrix {
 public:
  /// Examples with the label `ignore_index` do not count. Throws `ArgumentError` unless `classes`
  /// is positive.
  explicit ConfusionMatrix(std::int64_t classes,
                           std::optional<std::int64_t> ignore_index = std::nullopt);
  /// Adds logits, whose largest is the answer (the first of equal ones, or of NaNs), or answers: an
  /// integer tensor like the labels.
  void add(const Tensor& logits_or_answers, const Tensor& labels);

  /// The numbers of examples, i64 (classes, classes): by label, then by answer.
  Tensor value() const;
  /// By class, f64 (classes): the share of right ones among the answers, NaN without any.
  Tensor precision() const;
  /// By class, f64 (classes): the share of right answers among its examples, NaN without any.
  Tensor recall() const;
  /// The share of right answers.
  double accuracy() const;
  /// Forgets all examples.
  void reset() { counts_.assign(counts_.size(), 0); }

 private:
  std::int64_t count(std::int64_t label, std::int64_t answer) const {
    return counts_[static_cast<std::size_t>(label * classes_ + answer)];
  }

  std::int64_t classes_;
  std::optional<std::int64_t> ignore_index_;
  std::vector<std::int64_t> counts_;
};

/// The exponential of the mean cross-entropy of tokens.
class Perplexity {
 public:
  /// Adds the mean over some tokens. Throws `ArgumentError` for a negative number of tokens.
  void add(double mean_cross_entropy, std::int64_t tokens);
  /// Likewise for a tensor of one element, such as a loss.
  void add(const Tensor& mean_cross_entropy, std::int64_t tokens);

  /// exp of the mean over all tokens since the last `reset`.
  double value() const;
  /// Forgets all tokens.
  void reset() { mean_.reset(); }

 private:
  WeightedMean mean_;
};

}  // namespace palimpsest
