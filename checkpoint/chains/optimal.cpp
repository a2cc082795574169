#include "checkpoint/chains/optimal.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "checkpoint/chains/chain_table.h"
#include "checkpoint/plan.h"

namespace palimpsest {

namespace {

Bytes greatest_common_divisor(std::span<const ChainStage> stages) {
  Bytes divisor = 0;
  const auto divide = [&](Bytes bytes) { divisor = std::gcd(divisor, bytes); };
  for (const ChainStage& stage : stages) {
    for (const Bytes b : {stage.output, stage.forward_peak, stage.gradient}) divide(b);
    for (const ChainStage::Record& record : stage.records) {
      for (const Bytes b : {record.saved, record.forward_peak, record.backward_peak}) divide(b);
    }
  }
  return std::max<Bytes>(divisor, 1);
}

/// Memory to run every stage by its fastest record, or the smallest of these.
Bytes keep_all_peak(std::span<const ChainStage> stages) {
  Bytes peak = 0;
  for (std::size_t s = stages.size(); s-- > 0;) {
    Bytes best = INT64_MAX;
    const double fastest = fastest_record(stages[s]);
    for (const ChainStage::Record& record : stages[s].records) {
      if (record.forward + record.backward > fastest) continue;
      const Bytes forward = stages.back().gradient + record.forward_peak;
      best = std::min(best, std::max({forward, record.backward_peak, record.saved + peak}));
    }
    peak = best;
  }
  return peak;
}

/// The exponent of the power of two that costs are divided by, so that a table of single precision
/// can hold them. The division is exact.
int exponent_of_costs(std::span<const ChainStage> stages) {
  double most = 0;
  for (const ChainStage& stage : stages) {
    most = std::max(most, stage.forward);
    for (const ChainStage::Record& record : stage.records) {
      most = std::max({most, record.forward, record.backward});
    }
  }
  return most > 0 && std::isfinite(most) ? std::ilogb(most) : 0;
}

std::vector<ChainStage> with_scaled_costs(std::vector<ChainStage> stages, int exponent) {
  const auto scale = [&](double& cost) { cost = std::ldexp(cost, -exponent); };
  for (ChainStage& stage : stages) {
    scale(stage.forward);
    for (ChainStage::Record& record : stage.records) {
      scale(record.forward);
      scale(record.backward);
    }
  }
  return stages;
}

}  // namespace

OptimalChain::OptimalChain(std::vector<ChainStage> stages, Bytes most, Settings settings)
    : stages_(std::move(stages)) {
  check_chain(stages_);
  if (settings.slots == 0)
    throw ArgumentError("[optimal chain] there are no slots; give at least one");
  largest_ = keep_all_peak(stages_);
  most_ = std::min(most, largest_);
  const Bytes divisor = greatest_common_divisor(stages_);
  const Bytes widest = divisor * settings.slots;
  const Bytes slot =
      std::max<Bytes>((std::max<Bytes>(most_, 0) + widest - 1) / widest, 1) * divisor;
  exact_ = slot == divisor;
  const auto slots = static_cast<std::size_t>(std::max<Bytes>(most_, 0) / slot);
  using Rounding = ChainTable::Rounding;
  cost_exponent_ = exponent_of_costs(stages_);
  const std::vector<ChainStage> scaled = with_scaled_costs(stages_, cost_exponent_);
  table_ = std::make_shared<ChainTable>(scaled, slot, slots, Rounding::up);
  if (settings.bounded && !exact_) {
    bounds_ = std::make_shared<ChainTable>(scaled, slot, slots, Rounding::down);
  }
  smallest_ = table_->smallest(0, stages_.size() - 1);
}

ChainPlan OptimalChain::plan(Bytes budget) const {
  const Bytes limit = std::min(budget, most_);
  if (limit < smallest_) throw BudgetError(budget, smallest_, "optimal chain");
  using Kind = ChainOperation::Kind;
  struct Task {
    std::size_t first;
    std::size_t last;
    Bytes bytes;
    std::optional<ChainOperation> backward;  // if set, the task is only this
  };
  const std::size_t end = stages_.size() - 1;
  ChainPlan plan;
  std::vector<ChainTable::Choice> choices;
  std::vector<Task> tasks{{0, end, limit, {}}};
  while (!tasks.empty()) {
    const Task task = tasks.back();
    tasks.pop_back();
    if (task.backward) {
      plan.operations.push_back(*task.backward);
      continue;
    }
    table_->list_choices(task.first, task.last, choices);
    const ChainTable::Choice* best = nullptr;
    double least = std::numeric_limits<double>::infinity();
    for (const ChainTable::Choice& choice : choices) {
      if (choice.peak > task.bytes) continue;
      const double seconds = table_->least(task.first, task.last, task.bytes, choice);
      if (seconds < least) best = &choice;
      least = std::min(least, seconds);
    }
    internal_check(best != nullptr, "a feasible chain does not fit its memory");
    const auto first = static_cast<std::uint32_t>(task.first);
    const Bytes rest = task.bytes - best->held;
    if (best->record) {
      plan.operations.push_back({Kind::record, first, best->index});
      const ChainOperation backward{Kind::backward, first, best->index};
      tasks.push_back({task.first, task.first, 0, backward});
      if (task.first < task.last) tasks.push_back({task.first + 1, task.last, rest, {}});
    } else {
      for (std::uint32_t k = first; k < best->index; ++k) {
        plan.operations.push_back({k == first ? Kind::pass_on : Kind::pass, k});
      }
      tasks.push_back({task.first, best->index - 1, task.bytes, {}});
      tasks.push_back({best->index, task.last, rest, {}});
    }
  }
  const ChainUse use = run_chain(stages_, plan.operations);
  internal_check(use.peak <= limit, "a chain's plan takes more than its budget");
  plan.cost = use.cost;
  plan.peak = use.peak;
  for (const ChainStage& stage : stages_) plan.lower_bound += fastest_record(stage);
  const std::shared_ptr<const ChainTable>& bounds = exact_ ? table_ : bounds_;
  if (bounds != nullptr) {
    const double least = bounds->least(0, end, limit);
    plan.lower_bound += std::ldexp(least, cost_exponent_);
  }
  plan.lower_bound = std::min(plan.lower_bound, plan.cost);
  return plan;
}

}  // namespace palimpsest
