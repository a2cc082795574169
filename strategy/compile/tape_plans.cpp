#include "strategy/compile/tape_plans.h"

#include <utility>

#include "strategy/explain/peak_step.h"

namespace palimpsest {
namespace {

/// Copies what a tape records, and which of its values are present.
void copy_structure(const Tape& from, Tape& to) {
  to.copy_nodes(from);
  const Buffer mark = allocate_buffer(1);
  for (ValueId value = 0; value < from.value_count(); ++value) {
    if (from.has_value(value)) to.set_buffer(value, mark);
  }
}

class PlansOfCopy final : public BudgetPlans {
 public:
  PlansOfCopy(const Tape& tape, const ProgramSpec& spec, const RunOptions& options,
              std::unique_ptr<LoopStateBudgets> loops)
      : spec_(spec), options_(options), loops_(std::move(loops)) {
    copy_structure(tape, tape_);
  }

  Bytes bound() override { return loops_->peak_bound(tape_, spec_, options_); }

  std::optional<Found> within(Bytes budget) override {
    const std::optional<RunOptions> options = reserve(budget);
    if (!options) return {};
    return found(look_at_tape(tape_, spec_, *options));
  }

  std::pair<Bytes, Found> smallest() override {
    std::optional<RunOptions> options = reserve(0);
    internal_check(options.has_value(), "a program ran although its loops refuse every budget");
    OrRefusal<Planned> planned = plan_tape(tape_, spec_, *options);
    if (planned) return {planned->plan.predicted_peak(), *found(std::move(*planned))};
    const Bytes least = planned.refusal().smallest_feasible();
    // Within that budget, the loops may be divided in a better way.
    if (std::optional<Found> best = within(least)) return {least, *std::move(best)};
    options = reserve(0);
    options->memory_budget = least;
    return {least, *found(plan_tape(tape_, spec_, *options).take())};
  }

 private:
  /// The options for planning within a budget, which is divided.
  std::optional<RunOptions> reserve(Bytes budget) {
    RunOptions options = options_;
    options.memory_budget = budget;
    if (loops_->reserve(tape_, spec_, options)) return {};
    options.planner = planner_for(options, loops_->keep_all());
    return options;
  }

  std::optional<Found> found(std::optional<Planned> planned) const {
    if (!planned) return {};
    const NodeId node = planned->plan.schedule.steps[peak_step_of(planned->plan)].id;
    std::string name = NodeLabels::of(tape_, *planned->lowered).describe(node);
    return Found{std::move(planned->plan), std::move(name)};
  }

  Tape tape_;
  const ProgramSpec& spec_;
  const RunOptions& options_;
  std::unique_ptr<LoopStateBudgets> loops_;
};

}  // namespace

TapePlans::TapePlans(const Tape& tape, const ProgramSpec& spec, const RunOptions& options,
                     std::unique_ptr<const LoopStateBudgets> loops)
    : targets_(spec.targets.begin(), spec.targets.end()),
      held_(spec.held.begin(), spec.held.end()),
      spec_(spec),
      options_(options),
      loops_(std::move(loops)) {
  copy_structure(tape, tape_);
  spec_.targets = targets_;
  spec_.held = held_;
  spec_.donations = {};
  spec_.costs = options_.costs.get();
  options_.stop = {};
  options_.progress = nullptr;
}

std::unique_ptr<BudgetPlans> TapePlans::begin() const {
  return std::make_unique<PlansOfCopy>(tape_, spec_, options_, loops_->for_copy_of(tape_));
}

Bytes TapePlans::metadata_bytes() const { return tape_.metadata_bytes(); }

}  // namespace palimpsest
