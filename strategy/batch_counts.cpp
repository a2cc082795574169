#include "strategy/batch_counts.h"

#include <string>

#include "strategy/base/updates.h"
#include "strategy/execution/precision/precise.h"

namespace palimpsest {
namespace {

/// What the means of a part divide by.
std::vector<double> divisors_of(std::span<const double> whole, double weight) {
  std::vector<double> divisors;
  for (const double count : whole) divisors.push_back(count * weight);
  return divisors;
}

void require_equal(std::size_t means, std::size_t others) {
  if (means == others) return;
  throw ArgumentError("[execution] parts of a batch record " + std::to_string(means) + " and " +
                      std::to_string(others) +
                      " means over counted targets; record equally many for each part");
}

}  // namespace

BatchCounts::BatchCounts(const ExecutionStrategy& strategy)
    : options_{.memory_budget = strategy.run.memory_budget,
               .threads = strategy.thread_count(),
               .stop = strategy.run.stop},
      precision_(strategy.precision) {}

const std::shared_ptr<EngineEvaluator>& BatchCounts::evaluator() {
  if (evaluator_ == nullptr) {
    evaluator_ = lazy(options_);
    if (precision_) evaluator_ = precise(*precision_, std::move(evaluator_));
  }
  return evaluator_;
}

void BatchCounts::begin(std::size_t parts) {
  means_.resize(parts);
  for (CountedMeans& means : means_) means.begin();
  expected_.reset();
}

void BatchCounts::keep_for(std::size_t part, const LossAndOutputs& values) {
  means_[part].keep_for(all_of(values));
}

std::vector<double> BatchCounts::count() {
  std::vector<double> sums(means_[0].size());
  for (CountedMeans& means : means_) {
    require_equal(sums.size(), means.size());
    const std::vector<Var> counts = means.counts();
    means.tape()->set_evaluator(evaluator());
    evaluate(counts, options_);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += counts[i].item();
    means.forget_counts();
  }
  evaluator_->release_memory();
  return sums;
}

void BatchCounts::share(std::span<const double> whole, std::span<const double> weights) {
  for (std::size_t part = 0; part < means_.size(); ++part) {
    means_[part].divide_by(divisors_of(whole, weights[part]));
  }
}

void BatchCounts::share_with_later(std::span<const double> whole, std::span<const double> weights) {
  for (std::size_t part = 0; part < means_.size(); ++part) {
    means_[part].begin(divisors_of(whole, weights[part]));
  }
  expected_ = whole.size();
}

void BatchCounts::require_as_many(std::size_t part) const {
  if (expected_) require_equal(*expected_, means_[part].size());
}

std::vector<double> weights_of_parts(std::span<const std::int64_t> examples, std::int64_t all,
                                     LossReduction reduction) {
  std::vector<double> weights;
  for (const std::int64_t each : examples) {
    const double share = static_cast<double>(each) / static_cast<double>(all);
    weights.push_back(reduction == LossReduction::mean ? share : 1);
  }
  return weights;
}

}  // namespace palimpsest
