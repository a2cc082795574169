#include "strategy/batch_counts.h"

#include <algorithm>
#include <string>
#include <utility>

#include "strategy/execution/precision/precise.h"

namespace palimpsest {
namespace {

/// What the means of a part divide by.
std::vector<double> divisors_of(std::span<const double> whole, double weight) {
  std::vector<double> divisors;
  for (const double count : whole) divisors.push_back(count * weight);
  return divisors;
}

std::vector<Var> chosen(std::span<const Var> counts, const std::vector<bool>& is_needed) {
  std::vector<Var> needed;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (is_needed[i]) needed.push_back(counts[i]);
  }
  return needed;
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

void BatchCounts::note_needs(std::size_t part, const LossAndOutputs& values) {
  means_[part].note_needs(values.loss, values.outputs);
}

void BatchCounts::set_budget(Bytes budget) {
  options_.memory_budget = budget;
  if (evaluator_ != nullptr) evaluator_->set_memory_budget(budget);
}

bool BatchCounts::needs_room() const {
  constexpr Bytes parts_of_budget = 100;  // less than what all of a process may exceed it by
  if (!is_limited()) return false;
  return std::ranges::any_of(means_, [&](const CountedMeans& means) {
    Bytes bytes = 0;
    for (ValueId value = 0; means.tape() != nullptr && value < means.tape()->value_count();
         ++value) {
      if (!means.tape()->is_leaf(means.tape()->producer(value)))
        bytes += means.tape()->bytes(value);
    }
    return bytes > options_.memory_budget / parts_of_budget;
  });
}

bool BatchCounts::any() const { return !std::ranges::all_of(means_, &CountedMeans::empty); }

bool BatchCounts::are_equally_many() const {
  return std::ranges::all_of(
      means_, [&](const CountedMeans& means) { return means.size() == means_[0].size(); });
}

bool BatchCounts::any_part(std::size_t mean, bool (CountedMeans::*has)(std::size_t) const) const {
  return std::ranges::any_of(means_, [&](const CountedMeans& part) { return (part.*has)(mean); });
}

std::vector<bool> BatchCounts::needed_means() const {
  std::vector<bool> is_needed(means_[0].size());
  for (std::size_t i = 0; i < is_needed.size(); ++i) {
    is_needed[i] = counts_all_ || any_part(i, &CountedMeans::is_needed);
  }
  return is_needed;
}

std::optional<BudgetError> BatchCounts::refusal() {
  if (!is_limited() || !any() || !are_equally_many()) return {};
  const std::vector<bool> is_needed = needed_means();
  std::optional<BudgetError> largest;
  for (CountedMeans& means : means_) {
    const std::vector<Var> needed = chosen(means.counts(), is_needed);
    if (needed.empty()) continue;
    means.tape()->set_evaluator(evaluator());
    try {
      forecast_values(needed, options_, {.machine = {}});  // its times are of no interest
    } catch (const BudgetError& refused) {
      largest = larger_of(
          largest,
          BudgetError("[execution] counting what the means of a batch's parts divide by: " +
                          std::string(refused.what()),
                      refused.budget(), refused.smallest_feasible()));
    }
  }
  return largest;
}

std::vector<double> BatchCounts::count(const std::function<void()>& release) {
  const std::size_t size = means_[0].size();
  for (const CountedMeans& means : means_) require_equal(size, means.size());
  if (needs_room()) release();
  const std::vector<bool> is_needed = needed_means();
  std::vector<double> sums(size, -1);
  for (std::size_t i = 0; i < size; ++i) {
    if (is_needed[i]) sums[i] = 0;
  }
  for (CountedMeans& means : means_) {
    const std::vector<Var> counts = means.counts();
    const std::vector<Var> needed = chosen(counts, is_needed);
    if (needed.empty()) continue;
    means.tape()->set_evaluator(evaluator());
    try {
      evaluate(needed, options_);
    } catch (const BudgetError& refused) {
      throw_larger(refusal(), refused);
    }
    for (std::size_t i = 0; i < size; ++i) {
      if (is_needed[i]) sums[i] += counts[i].item();
    }
  }
  for (CountedMeans& means : means_) means.forget_counts();
  if (evaluator_ != nullptr) evaluator_->release_memory();
  return sums;
}

std::vector<double> BatchCounts::of_loss(std::span<const double> whole) const {
  std::vector<double> counts;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (any_part(i, &CountedMeans::is_in_loss)) counts.push_back(whole[i]);
  }
  return counts;
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

std::optional<BudgetError> larger_of(std::optional<BudgetError> a, std::optional<BudgetError> b) {
  if (!a || !b) return a ? a : b;
  return a->smallest_feasible() < b->smallest_feasible() ? b : a;
}

void throw_larger(std::optional<BudgetError> a, std::optional<BudgetError> b) {
  if (const auto refused = larger_of(std::move(a), std::move(b))) throw *refused;
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
