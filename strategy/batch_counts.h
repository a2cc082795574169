#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "autodiff/operations/counted_mean.h"
#include "strategy/backward.h"
#include "strategy/base/execution_strategy.h"
#include "strategy/base/model.h"
#include "strategy/evaluators/evaluators.h"

namespace palimpsest PALIMPSEST_EXPORT {  // for palimpsest-mpi

/// The counts that the means of a batch's parts divide by. Each part divides by a share of the
/// count of the whole batch, so that the weighted sum of the parts is the mean of the whole batch:
/// by count · weight, where the weight is the factor of the part in that sum.
class BatchCounts {
 public:
  explicit BatchCounts(const ExecutionStrategy& strategy);

  /// Begins a batch of so many parts.
  void begin(std::size_t parts);
  /// The means that part `part` has recorded.
  CountedMeans& of(std::size_t part) { return means_[part]; }
  /// Notes which means the values of a part depend on. `count` leaves out a mean that no part
  /// needs.
  void note_needs(std::size_t part, const LossAndOutputs& values);
  /// Makes `count` leave out none: parts of other processes may need other means.
  void count_all() { counts_all_ = true; }
  /// Whether a part has recorded any.
  bool any() const;
  /// Parts that are recorded from now on must have none.
  void expect_none() { expected_ = 0; }

  /// The budget for counting; that of the strategy, unless other memory is allocated for long.
  void set_budget(Bytes budget);
  bool is_limited() const { return options_.memory_budget != unlimited; }
  /// The refusal of the part that needs the largest budget to be counted, without counting; nothing
  /// where the budget is enough for all parts, or where they have recorded different numbers of
  /// means, which is an error of `count`. Call before `count` returns. Throws `ArgumentError` for a
  /// mean in a body of a loop.
  std::optional<BudgetError> refusal();
  /// Counts what the parts' means divide by, and adds up the counts of all parts, by mean. The sum
  /// is negative for a mean that no part needs. Throws `ArgumentError` where parts have recorded
  /// different numbers of means, and for a mean in a body of a loop. Throws `refusal`. Calls
  /// `release` first if counting may take so much that other memory of the budget must be released.
  std::vector<double> count(const std::function<void()>& release);
  /// Makes the recorded parts divide by their shares of the whole counts. `weights` has the factors
  /// of the parts.
  void share(std::span<const double> whole, std::span<const double> weights);
  /// Likewise, but for parts that are recorded again, for tapes that compute while they record.
  void share_with_later(std::span<const double> whole, std::span<const double> weights);
  /// The counts that means in the loss divide by, among the whole counts.
  std::vector<double> of_loss(std::span<const double> whole) const;
  /// Throws `ArgumentError` if a part has another number of means than when it was recorded before,
  /// or any after `expect_none`.
  void require_as_many(std::size_t part) const;

  /// For tapes that parts are recorded on only to count, and that compute nothing else.
  const std::shared_ptr<EngineEvaluator>& evaluator();

 private:
  bool needs_room() const;
  bool any_part(std::size_t mean, bool (CountedMeans::*has)(std::size_t) const) const;
  /// Whether all parts have recorded equally many means.
  bool are_equally_many() const;
  /// By mean: whether it is counted.
  std::vector<bool> needed_means() const;

  RunOptions options_;
  std::optional<Precision> precision_;
  std::shared_ptr<EngineEvaluator> evaluator_;  // null before it is needed
  bool counts_all_ = false;
  std::optional<std::size_t> expected_;  // means of each part that is still to be recorded
  std::vector<CountedMeans> means_;      // by part
};

/// The refusal that names the larger budget, if there is one.
std::optional<BudgetError> larger_of(std::optional<BudgetError> a, std::optional<BudgetError> b);
/// Throws it.
void throw_larger(std::optional<BudgetError> a, std::optional<BudgetError> b);

/// The factors of parts with these numbers of examples in the sum that is the loss of a batch of
/// `all` examples.
std::vector<double> weights_of_parts(std::span<const std::int64_t> examples, std::int64_t all,
                                     LossReduction reduction);

}  // namespace palimpsest
