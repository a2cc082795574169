#include "strategy/choice/recommend.h"

#include <algorithm>
#include <cstdio>
#include <iomanip>
#include <ostream>

#include "strategy/execution/batch_parts.h"
#include "strategy/forms.h"
#include "strategy/free_memory.h"

namespace palimpsest {
namespace {

/// What is gained by less is not worth a change of anything.
constexpr double worth = 0.99;

std::string milliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g ms", 1e3 * seconds);
  return text;
}

/// Of pipelines: the least there is, and one for each thread.
std::vector<int> stages_for(int threads) {
  constexpr int most = 16;
  std::vector<int> stages{2};
  if (threads > 2) stages.push_back(std::min(threads, most));
  return stages;
}

/// All that are considered, simple ones first.
std::vector<ExecutionStrategy> candidates(const Workload& workload, const RecommendOptions& options,
                                          Bytes memory) {
  ExecutionStrategy base;
  if (!workload.training) base.gradient = GradientMode::none;
  base.memory_budget = memory;
  const int threads = checked_threads(options.threads);
  std::vector<std::optional<Precision>> precisions{std::nullopt};
  precisions.insert(precisions.end(), options.precisions.begin(), options.precisions.end());
  const bool is_cut = workload.may_be_cut && workload.training && !workload.batch.empty();
  const std::int64_t examples = is_cut ? std::max<std::int64_t>(1, examples_of(workload.batch)) : 1;
  const std::int64_t most = std::min<std::int64_t>(examples, options.most_micro_batches);

  std::vector<ExecutionStrategy> list;
  for (const std::optional<Precision>& precision : precisions) {
    base.precision = precision;
    for (std::int64_t micro_batches = 1; micro_batches <= most; micro_batches *= 2) {
      base.accumulation = static_cast<int>(micro_batches);
      const auto add = [&](ParallelMode mode) -> ExecutionStrategy& {
        ExecutionStrategy& added = list.emplace_back(base);
        added.parallelism = mode;
        if (mode != ParallelMode::none) added.threads = options.threads;
        return added;
      };
      add(ParallelMode::automatic);
      if (threads == 1) continue;
      add(ParallelMode::none);
      if (examples >= threads * micro_batches) add(ParallelMode::data_parallel).workers = threads;
      for (const int stages : stages_for(threads)) {
        if (micro_batches >= 2 * stages) add(ParallelMode::pipeline).stages = stages;
      }
    }
  }
  return list;
}

/// Whether micro-batches so small are not to be looked at, since larger ones fit, and are enough to
/// keep the stages of a pipeline busy.
bool is_needless(const ExecutionStrategy& strategy, std::span<const Considered> considered) {
  return std::ranges::any_of(considered, [&](const Considered& other) {
    return other.estimate && other.estimate->compute_overhead <= 0 &&
           other.strategy.precision == strategy.precision &&
           other.strategy.parallelism == strategy.parallelism &&
           other.strategy.stages == strategy.stages &&
           other.strategy.accumulation < strategy.accumulation &&
           other.strategy.accumulation >= 4 * other.strategy.stages;
  });
}

/// None for what the model, whose estimate as a whole was made, is not to be cut into: it looks at
/// values, has too few operations, or records parameters of its own.
std::optional<Considered> consider(const ExecutionStrategy& strategy, const Workload& workload,
                                   const Rates& rates) {
  Considered considered{strategy, {}, 0};
  try {
    considered.estimate = estimate(strategy, workload, rates);
  } catch (const BudgetError& error) {
    considered.smallest = error.smallest_feasible();
  } catch (const ArgumentError&) {
    const bool is_cut = strategy.accumulation > 1 || strategy.replicas() > 1;
    if (!is_cut && strategy.parallelism != ParallelMode::pipeline) throw;
    return {};
  }
  return considered;
}

std::string reason_of(const Recommendation& made, Bytes memory) {
  const auto fit = std::ranges::count_if(
      made.considered, [](const Considered& each) { return each.estimate.has_value(); });
  std::string reason = made.strategy.summary() + ": ";
  if (fit == 1) {
    reason += "the only one of " + std::to_string(made.considered.size()) + " that fits " +
              format_bytes(memory);
    return reason;
  }
  reason += "the fastest of " + std::to_string(fit) + " that fit " + format_bytes(memory);
  const auto next = std::ranges::find_if(made.considered, [&](const Considered& each) {
    return each.estimate && each.strategy != made.strategy;
  });
  const double gained = next->estimate->seconds / made.estimate.seconds;
  if (gained * worth < 1) return reason + ", or as fast as any and simpler";
  char text[64];
  std::snprintf(text, sizeof text, ", %.2f times as fast as the next", gained);
  return reason + text;
}

}  // namespace

Recommendation recommend(const Workload& workload, const RecommendOptions& options) {
  if (options.memory < 0 || options.most_micro_batches < 1) {
    throw ArgumentError("[recommend] memory is " + std::to_string(options.memory) +
                        " and most_micro_batches " + std::to_string(options.most_micro_batches) +
                        "; give bytes, or 0 for what is free, and 1 or more");
  }
  const Bytes memory = options.memory > 0 ? options.memory : free_memory();
  Recommendation made;
  for (const ExecutionStrategy& strategy : candidates(workload, options, memory)) {
    if (is_needless(strategy, made.considered)) continue;
    if (const auto considered = consider(strategy, workload, options.rates)) {
      made.considered.push_back(*considered);
    }
  }
  const Considered* best = nullptr;
  for (const Considered& each : made.considered) {
    if (!each.estimate) continue;
    if (best == nullptr || each.estimate->seconds < worth * best->estimate->seconds) best = &each;
  }
  if (best == nullptr) {
    const auto least = std::ranges::min_element(made.considered, {}, &Considered::smallest);
    throw BudgetError("[recommend] none of " + std::to_string(made.considered.size()) +
                          " strategies fits " + std::to_string(memory) +
                          " bytes; the smallest that would do is " +
                          std::to_string(least->smallest) + ", for: " + least->strategy.summary(),
                      memory, least->smallest);
  }
  made.strategy = best->strategy;
  made.estimate = *best->estimate;
  std::ranges::stable_sort(made.considered, [](const Considered& a, const Considered& b) {
    if (!a.estimate || !b.estimate) return a.estimate.has_value() && !b.estimate.has_value();
    return a.estimate->seconds < b.estimate->seconds;
  });
  made.reason = reason_of(made, memory);
  return made;
}

std::ostream& operator<<(std::ostream& stream, const Recommendation& recommendation) {
  const auto row = [&](const std::string& seconds, const std::string& peak,
                       const std::string& again, const std::string& summary) {
    stream << std::setw(10) << seconds << std::setw(11) << peak << std::setw(8) << again << "  "
           << summary << '\n';
  };
  row("time", "peak", "again", "strategy");
  for (const Considered& each : recommendation.considered) {
    if (!each.estimate) {
      row("-", ">" + format_bytes(each.smallest), "-", each.strategy.summary());
      continue;
    }
    char again[16];
    std::snprintf(again, sizeof again, "%.0f %%", 100 * each.estimate->compute_overhead);
    row(milliseconds(each.estimate->seconds), format_bytes(each.estimate->peak), again,
        each.strategy.summary());
  }
  return stream << recommendation.reason << '\n';
}

}  // namespace palimpsest
