#include "strategy/training/micro_batch_weights.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "autodiff/error.h"
#include "autodiff/number_text.h"

namespace palimpsest {
namespace {

/// The counts and, for a loss with other terms, the examples: what its terms are weighted by.
std::vector<double> shares_of(const LossCounts& counts, std::int64_t examples) {
  std::vector<double> shares = counts.counts;
  if (counts.has_other_terms) shares.push_back(static_cast<double>(examples));
  return shares;
}

/// Whether one weight is right for all terms, within rounding.
bool are_in_proportion(std::span<const double> a, std::span<const double> b) {
  for (std::size_t i = 1; i < a.size(); ++i) {
    const double one = a[0] * b[i];
    const double other = a[i] * b[0];
    if (std::abs(one - other) > 1e-12 * std::max(std::abs(one), std::abs(other))) return false;
  }
  return true;
}

std::string in_words(std::span<const double> shares, bool has_examples) {
  std::string text;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const bool is_examples = has_examples && i + 1 == shares.size();
    text += (i > 0 ? " and " : "") + number_text(shares[i]) +
            (is_examples ? " examples" : " counted targets");
  }
  return text;
}

constexpr const char* advice =
    "give the whole batch to an Execution with accumulation, which weighs each mean by itself";

}  // namespace

void MicroBatchWeights::require_one_weight(const LossCounts& counts, std::int64_t examples) const {
  const bool is_sum = normalization_ == GradientNormalization::sum;
  if (steps_ > 1 && is_sum && !counts.empty() && counts.has_other_terms) {
    throw ArgumentError(
        std::string("[accumulator] the loss of a micro-batch adds a mean over counted targets to "
                    "sums over examples, for which no one weight is right; ") +
        advice);
  }
  if (!has_any_) return;
  const std::vector<double> shares = shares_of(counts, examples);
  if (shares_.empty() != counts.empty() || (!counts.empty() && shares.size() != shares_.size())) {
    throw ArgumentError(
        "[accumulator] the losses of an update have different numbers of means over counted "
        "targets; record one loss for all of its micro-batches, or give each as Gradients");
  }
  if (are_in_proportion(shares_, shares)) return;
  throw ArgumentError("[accumulator] the terms of the loss are means over " +
                      in_words(shares, counts.has_other_terms) + " in a micro-batch, but over " +
                      in_words(shares_, counts.has_other_terms) +
                      " in one before, so no one weight is right for all of them; " + advice);
}

double MicroBatchWeights::units_of(const LossCounts& counts, std::int64_t examples) const {
  if (!counts.empty()) return counts.counts[0];
  return normalization_ == GradientNormalization::weighted ? static_cast<double>(examples) : 1;
}

double MicroBatchWeights::weight_of(double units) const {
  // Relative to the first micro-batch, so that micro-batches of equal size have the bits of `mean`.
  return units > 0 && first_units_ > 0 ? units / first_units_ : 1;
}

void MicroBatchWeights::add(const LossCounts& counts, std::int64_t examples) {
  const double units = units_of(counts, examples);
  const bool is_first_of_weight = !(first_units_ > 0);
  if (is_first_of_weight) {
    shares_ = counts.empty() ? std::vector<double>() : shares_of(counts, examples);
    first_units_ = units;
  }
  units_ += units;
  has_any_ = true;
}

double MicroBatchWeights::divisor() const {
  const bool is_sum = normalization_ == GradientNormalization::sum && shares_.empty();
  return is_sum || !(first_units_ > 0) ? 1 : units_ / first_units_;
}

void MicroBatchWeights::reset() {
  has_any_ = false;
  shares_.clear();
  units_ = first_units_ = 0;
}

}  // namespace palimpsest
