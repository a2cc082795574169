#include "strategy/execution/choice/recommend.h"

#include <algorithm>
#include <cstdio>
#include <iomanip>
#include <ostream>

#include "autodiff/require_function.h"
#include "strategy/base/batch_parts.h"
#include "strategy/base/free_memory.h"
#include "strategy/compile/form_choice.h"
#include "strategy/execution/choice/record_part.h"

namespace palimpsest {
namespace {

/// Smaller gains do not justify a more complicated strategy.
constexpr double worth = 0.99;

std::string milliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g ms", 1e3 * seconds);
  return text;
}

/// Numbers of pipeline stages to consider: two, and one per thread.
std::vector<int> stages_for(int threads) {
  constexpr int most = 16;
  std::vector<int> stages{2};
  if (threads > 2) stages.push_back(std::min(threads, most));
  return stages;
}

ExecutionStrategy base_of(bool training, const RecommendOptions& options, Bytes memory) {
  ExecutionStrategy base;
  if (!training) base.gradient = GradientMode::none;
  base.run.memory_budget = memory;
  base.run.threads = options.threads;
  return base;
}

/// Adds strategies that recompute by a setting instead of a budget.
void add_checkpointed(const ExecutionStrategy& base, std::vector<ExecutionStrategy>& list) {
  ExecutionStrategy checkpointed = base;
  checkpointed.gradient = GradientMode::checkpointed;
  for (const double fraction : {0.5, 0.25}) {
    list.emplace_back(checkpointed).checkpoint_fraction = fraction;
  }
  for (const std::uint32_t interval : {8u, 64u}) {
    list.emplace_back(checkpointed).checkpoint_interval = interval;
  }
}

/// Adds other strategies for the whole batch: checkpointing settings, modes that compute while they
/// record, and devices that share the threads.
void add_other_ways(const ExecutionStrategy& base, bool training, int threads,
                    std::vector<ExecutionStrategy>& list) {
  if (training) add_checkpointed(base, list);
  list.emplace_back(base).mode = ExecutionMode::hybrid;
  list.emplace_back(base).mode = ExecutionMode::eager;
  if (threads == 1) return;
  ExecutionStrategy& apart = list.emplace_back(base);
  apart.parallelism = ParallelMode::model_parallel;
  apart.devices.resize(2);
}

/// The shape of the value of the first of `parts` parts of a batch. Nothing where it cannot be
/// recorded: the model needs the whole batch, or looks at values that do not fit the memory.
std::optional<Shape> shape_of_part(const LocatedWorkload& workload, int parts, Bytes memory) {
  ExecutionStrategy strategy{.gradient = GradientMode::none, .run = {.memory_budget = memory}};
  strategy.parallelism = parts > 1 ? ParallelMode::data_parallel : ParallelMode::none;
  strategy.workers = parts > 1 ? parts : 0;
  const BatchCut cut =
      cut_batch(strategy, BatchResults::values, workload.parameters, workload.batch, 1, parts);
  try {
    Replica replica(strategy, cut.options, cut.replicas, 0);
    CountedMeans means;
    return record_part(replica, strategy, cut, 0, workload, means).loss.shape();
  } catch (const UsageError&) {
  } catch (const BudgetError&) {
  }
  return {};
}

/// Whether parts of the batch may be computed separately. For a loss the workload decides. A value
/// must also have a row for each example, as a whole and in a half, and the same other axes.
bool is_cut(const LocatedWorkload& workload, int threads, Bytes memory) {
  if (!workload.may_be_cut || workload.batch.empty()) return false;
  if (workload.training) return true;
  const std::int64_t examples = examples_or_one(workload.batch);
  if (threads == 1 || examples < 2) return false;
  const auto has_rows = [](const Shape& shape, std::int64_t rows) {
    return shape.rank() > 0 && shape[0] == rows;
  };
  for (const Tensor& tensor : workload.batch) {
    if (!has_rows(tensor.shape(), examples)) return false;
  }
  std::optional<Shape> whole = shape_of_part(workload, 1, memory);
  if (!whole || !has_rows(*whole, examples)) return false;
  (*whole)[0] = (examples + 1) / 2;  // the first half is the larger one
  return shape_of_part(workload, 2, memory) == whole;
}

/// All strategies to consider, simple ones first. For values only a pipeline makes micro-batches.
std::vector<ExecutionStrategy> candidates(const LocatedWorkload& workload,
                                          const RecommendOptions& options, Bytes memory) {
  ExecutionStrategy base = base_of(workload.training, options, memory);
  const int threads = checked_threads(options.threads);
  std::vector<std::optional<Precision>> precisions{std::nullopt};
  precisions.insert(precisions.end(), options.precisions.begin(), options.precisions.end());
  const std::int64_t examples = is_cut(workload, threads, memory)
                                    ? std::max<std::int64_t>(1, examples_of(workload.batch))
                                    : 1;
  const std::int64_t most = std::min<std::int64_t>(examples, options.most_micro_batches);

  std::vector<ExecutionStrategy> list;
  for (const std::optional<Precision>& precision : precisions) {
    base.precision = precision;
    for (std::int64_t micro_batches = 1; micro_batches <= most; micro_batches *= 2) {
      base.accumulation = static_cast<int>(micro_batches);
      const auto add = [&](ParallelMode mode) -> ExecutionStrategy& {
        ExecutionStrategy& added = list.emplace_back(base);
        added.parallelism = mode;
        if (mode == ParallelMode::none) added.run.threads = 0;
        return added;
      };
      const bool has_turns = workload.training || micro_batches == 1;
      if (has_turns) add(ParallelMode::automatic);
      if (threads == 1) continue;
      if (has_turns) add(ParallelMode::none);
      if (has_turns && examples >= threads * micro_batches) {
        add(ParallelMode::data_parallel).workers = threads;
      }
      for (const int stages : stages_for(threads)) {
        if (micro_batches >= 2 * stages) add(ParallelMode::pipeline).stages = stages;
      }
    }
    base.accumulation = 1;
    add_other_ways(base, workload.training, threads, list);
  }
  return list;
}

/// Whether a strategy need not be estimated. For the whole batch: one that recomputes by a setting
/// where nothing must be recomputed, and one that plans less than a lazy mode where something must
/// be. Also micro-batches smaller than necessary: larger ones fit, and keep the stages of a
/// pipeline busy.
bool is_needless(const ExecutionStrategy& strategy, std::span<const Considered> considered) {
  const auto is_like = [&](const Considered& other) {
    return other.strategy.precision == strategy.precision &&
           other.strategy.parallelism == strategy.parallelism;
  };
  const auto fits_easily = [](const Considered& other) {
    return other.estimate && other.estimate->compute_overhead <= 0;
  };
  const auto planned = std::ranges::find_if(considered, is_like);
  if (strategy.gradient == GradientMode::checkpointed) return fits_easily(*planned);
  if (strategy.mode != ExecutionMode::lazy) {
    return planned->estimate && planned->estimate->compute_overhead > 0;
  }
  return std::ranges::any_of(considered, [&](const Considered& other) {
    return is_like(other) && fits_easily(other) && other.strategy.stages == strategy.stages &&
           other.strategy.accumulation < strategy.accumulation &&
           other.strategy.accumulation >= 4 * other.strategy.stages;
  });
}

/// Nothing if the model cannot be cut in this way: it looks at values, has too few operations, or
/// records parameters of its own. The model was estimated successfully as a whole.
std::optional<Considered> consider(const ExecutionStrategy& strategy,
                                   const LocatedWorkload& workload, const Rates& rates) {
  Considered considered{strategy, {}, 0};
  try {
    considered.estimate = estimate(strategy, workload, rates, workload.where);
  } catch (const BudgetError& error) {
    considered.smallest = error.smallest_feasible();
  } catch (const ArgumentError&) {
    const bool is_cut = strategy.accumulation > 1 || strategy.replicas() > 1 ||
                        strategy.parallelism == ParallelMode::pipeline ||
                        strategy.parallelism == ParallelMode::model_parallel;
    if (!is_cut) throw;
    return {};
  }
  return considered;
}

/// Whether a strategy is sure to fit, because it plans everything before it computes.
bool is_sure(const ExecutionStrategy& strategy) {
  return strategy.mode == ExecutionMode::lazy && strategy.run.memory != AllocationPolicy::cached;
}

std::string reason_of(const Recommendation& made, Bytes memory) {
  const auto was_in_question = [&](const Considered& each) {
    return each.estimate && (is_sure(each.strategy) || !is_sure(made.strategy));
  };
  const bool all_were = std::ranges::all_of(made.considered, [&](const Considered& each) {
    return !each.estimate || was_in_question(each);
  });
  const auto fit = std::ranges::count_if(made.considered, was_in_question);
  std::string reason = made.strategy.summary() + ": ";
  if (fit == 1) {
    reason += "the only one of " + std::to_string(made.considered.size()) +
              (all_were ? " that fits " : " that is sure to fit ") + format_bytes(memory);
    return reason;
  }
  reason += "the fastest of " + std::to_string(fit) +
            (all_were ? " that fit " : " that are sure to fit ") + format_bytes(memory);
  const auto next = std::ranges::find_if(made.considered, [&](const Considered& each) {
    return was_in_question(each) && each.strategy != made.strategy;
  });
  // A graph whose nodes have no costs takes no time.
  const double seconds = made.estimate.seconds;
  if (next->estimate->seconds * worth <= seconds) return reason + ", or equally fast and simpler";
  if (seconds <= 0) return reason;
  const double gained = next->estimate->seconds / seconds;
  char text[64];
  std::snprintf(text, sizeof text, ", %.2f times as fast as the next", gained);
  return reason + text;
}

Bytes memory_of(const RecommendOptions& options) {
  if (options.memory < 0 || options.most_micro_batches < 1) {
    throw ArgumentError(
        "[recommend] memory is " + std::to_string(options.memory) + " and most_micro_batches is " +
        std::to_string(options.most_micro_batches) +
        "; give memory in bytes, or 0 for all free memory, and 1 or more micro-batches");
  }
  return options.memory > 0 ? options.memory : free_memory();
}

/// The fastest of those that are sure to fit; the fastest of the others where there is none.
const Considered* best_of(std::span<const Considered> considered) {
  const Considered* best = nullptr;
  for (const Considered& each : considered) {
    if (!each.estimate) continue;
    if (best != nullptr && is_sure(best->strategy) && !is_sure(each.strategy)) continue;
    const bool is_first_sure =
        best != nullptr && is_sure(each.strategy) && !is_sure(best->strategy);
    if (best == nullptr || is_first_sure ||
        each.estimate->seconds < worth * best->estimate->seconds) {
      best = &each;
    }
  }
  return best;
}

Recommendation choose(std::vector<Considered> considered, Bytes memory) {
  Recommendation made;
  made.considered = std::move(considered);
  const Considered* const best = best_of(made.considered);
  if (best == nullptr) {
    // Modes that compute while they record report what is too little, not what is enough.
    const auto least = std::ranges::min_element(made.considered, {}, [](const Considered& each) {
      return each.strategy.mode == ExecutionMode::lazy ? each.smallest : unlimited;
    });
    ExecutionStrategy sufficient = least->strategy;
    sufficient.run.memory_budget = least->smallest;
    throw BudgetError("[recommend] none of " + std::to_string(made.considered.size()) +
                          " strategies fits " + std::to_string(memory) +
                          " bytes; the smallest sufficient memory is " +
                          std::to_string(least->smallest) + " bytes, for: " + sufficient.summary(),
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

}  // namespace

Recommendation recommend(const Workload& given, const RecommendOptions& options, Where where) {
  detail::require_function(given.model, "recommend", "the model of the workload", "records a loss",
                           where);
  const LocatedWorkload workload{given, where};
  const Bytes memory = memory_of(options);
  std::vector<Considered> considered;
  for (const ExecutionStrategy& strategy : candidates(workload, options, memory)) {
    if (is_needless(strategy, considered)) continue;
    if (const auto found = consider(strategy, workload, options.rates)) {
      considered.push_back(*found);
    }
  }
  return choose(std::move(considered), memory);
}

Recommendation recommend(const Graph& graph, const RecommendOptions& options) {
  const Bytes memory = memory_of(options);
  if (!options.precisions.empty()) {
    throw ArgumentError(
        "[recommend] a graph has a fixed precision; leave precisions out, or give a workload");
  }
  const bool training = graph.backward_begins().has_value();
  const ExecutionStrategy base = base_of(training, options, memory);
  std::vector<ExecutionStrategy> list{base};
  if (checked_threads(options.threads) > 1) {
    ExecutionStrategy& alone = list.emplace_back(base);
    alone.parallelism = ParallelMode::none;
    alone.run.threads = 0;
  }
  if (training) add_checkpointed(base, list);
  list.emplace_back(base).mode = ExecutionMode::eager;
  std::vector<Considered> considered;
  for (const ExecutionStrategy& strategy : list) {
    if (is_needless(strategy, considered)) continue;
    Considered& each = considered.emplace_back(strategy);
    try {
      each.estimate = estimate(strategy, graph, options.rates);
    } catch (const BudgetError& error) {
      each.smallest = error.smallest_feasible();
    }
  }
  return choose(std::move(considered), memory);
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
