#include "strategy/explain/explanation.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "checkpoint/lower_bound.h"
#include "checkpoint/planners/planning.h"
#include "strategy/explain/peak_step.h"

namespace palimpsest {
std::size_t peak_step_of(const Plan& plan) {
  std::size_t peak = 0;
  Bytes most = -1;
  const std::vector<Bytes>& timeline = plan.simulation.timeline;
  for (std::size_t k = 0; k < timeline.size(); ++k) {
    if (plan.schedule.steps[k].kind == Step::Kind::compute && timeline[k] > most) {
      most = timeline[k];
      peak = k;
    }
  }
  return peak;
}

namespace {

/// Plans a program in the forms that `backward` compares, and takes the cheapest plan.
class FormSearch final : public BudgetPlans {
 public:
  explicit FormSearch(const Planner& planner) : planner_(planner) {}

  void add(const Graph& graph, const NodeLabels& labels) {
    forms_.push_back({&graph, &labels, Planning(graph, planner_), peak_bound(graph).bytes,
                      graph.one_pass_cost()});
  }

  Bytes bound() override { return std::ranges::min_element(forms_, {}, &Form::bound)->bound; }

  std::optional<Found> within(Bytes budget) override {
    std::optional<Found> found;
    for (Form& form : forms_) {
      const double cost = found ? found->plan.simulation.cost : INFINITY;
      if (form.bound > budget || cost <= form.one_pass_cost) continue;
      std::optional<Plan> plan = form.planning.look(budget);
      if (plan && plan->simulation.cost < cost) found = with_node(*std::move(plan), form);
    }
    return found;
  }

  std::pair<Bytes, Found> smallest() override {
    Bytes least = unlimited;
    Form* best = &forms_.front();
    for (Form& form : forms_) {
      const Bytes budget = smallest_budget(*form.graph, planner_);
      if (budget < least) best = &form;
      least = std::min(least, budget);
    }
    if (std::optional<Found> found = within(least)) return {least, *std::move(found)};
    return {least, with_node(best->planning.make(least), *best)};
  }

 private:
  struct Form {
    const Graph* graph;
    const NodeLabels* labels;
    Planning planning;
    Bytes bound;
    double one_pass_cost;
  };

  static Found with_node(Plan plan, const Form& form) {
    const NodeId node = plan.schedule.steps[peak_step_of(plan)].id;
    return {std::move(plan), form.labels->describe(node)};
  }

  const Planner& planner_;
  std::vector<Form> forms_;
};

}  // namespace

Explanation::Explanation(std::shared_ptr<const Graph> graph, std::shared_ptr<const Plan> plan,
                         PlannerPtr planner, NodeLabels labels, std::vector<Form> others,
                         Loops loops)
    : graph_(std::move(graph)),
      plan_(std::move(plan)),
      planner_(std::move(planner)),
      labels_(std::move(labels)),
      others_(std::move(others)),
      loops_(std::move(loops)),
      peak_step_(peak_step_of(*plan_)) {}

std::vector<Explanation::LiveStorage> Explanation::live_at(std::size_t step) const {
  const std::vector<Step>& steps = plan_->schedule.steps;
  if (step >= steps.size() || steps[step].kind != Step::Kind::compute) {
    throw ArgumentError("[explain] step " + std::to_string(step) + " of " +
                        std::to_string(steps.size()) +
                        " computes nothing; give a compute step of plan().schedule");
  }
  const std::vector<Interval>& intervals = plan_->layout.intervals;
  const auto covers = [&](const Interval& interval) {
    return interval.first <= step && step <= interval.last;
  };
  const auto is_result = [&](ValueId storage) {
    return std::ranges::any_of(graph_->targets(),
                               [&](ValueId target) { return graph_->storage(target) == storage; });
  };
  std::vector<bool> is_taken_over(intervals.size());  // its bytes count for its successor
  for (const Interval& interval : intervals) {
    if (covers(interval) && interval.takes_over != none) is_taken_over[interval.takes_over] = true;
  }
  constexpr std::size_t never = SIZE_MAX;
  std::vector<std::size_t> next_read(graph_->value_count(), never);  // by storage
  for (std::size_t k = steps.size(); k-- > step + 1;) {
    if (steps[k].kind != Step::Kind::compute) continue;
    for (const ValueId input : graph_->inputs(steps[k].id)) {
      next_read[graph_->storage(input)] = k;
    }
  }
  const NodeId running = steps[step].id;
  const auto reads = [&](ValueId storage) {
    return std::ranges::any_of(graph_->inputs(running),
                               [&](ValueId input) { return graph_->storage(input) == storage; });
  };
  std::vector<LiveStorage> live;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    const Interval& interval = intervals[i];
    if (!covers(interval) || is_taken_over[i]) continue;
    if (interval.storage == Interval::workspace) {
      live.push_back({running, interval.bytes, Reason::workspace, running});
      continue;
    }
    const std::size_t read = next_read[interval.storage];
    LiveStorage each{graph_->producer(interval.storage), interval.bytes, Reason::result, none};
    if (read <= interval.last) each.reader = steps[read].id;
    const bool was_present = interval.first == 0 && graph_->is_present(interval.storage);
    if (interval.first == step && !was_present) {
      each.reason = Reason::made;
    } else if (each.reader != none) {
      each.reason = Reason::read_later;
    } else if (reads(interval.storage) && !is_result(interval.storage)) {
      each.reason = Reason::operand;
      each.reader = running;
    }
    live.push_back(each);
  }
  std::ranges::stable_sort(live, std::ranges::greater(), &LiveStorage::bytes);
  return live;
}

std::vector<Explanation::Repeated> Explanation::recomputed() const {
  std::vector<std::uint32_t> runs(graph_->node_count());
  for (const Step& step : plan_->schedule.steps) {
    if (step.kind == Step::Kind::compute) ++runs[step.id];
  }
  std::vector<Repeated> repeated;
  for (NodeId node = 0; node < graph_->node_count(); ++node) {
    if (runs[node] > 1) {
      repeated.push_back({node, runs[node], (runs[node] - 1) * graph_->cost(node)});
    }
  }
  std::ranges::stable_sort(repeated, std::ranges::greater(), &Repeated::seconds);
  return repeated;
}

std::vector<Explanation::LoopSteps> Explanation::repeated_steps() const {
  std::vector<LoopSteps> repeated;
  for (const LoopSteps& loop : loops_.steps) {
    if (loop.repeated > 0) repeated.push_back(loop);
  }
  std::ranges::stable_sort(repeated, std::ranges::greater(), &LoopSteps::seconds);
  return repeated;
}

Explanation::Budgets Explanation::other_budgets(int points) const {
  std::unique_ptr<BudgetPlans> search;
  if (loops_.plans != nullptr) {
    search = loops_.plans->begin();
  } else {
    auto forms = std::make_unique<FormSearch>(*planner_);
    forms->add(*graph_, labels_);
    for (const Form& other : others_) forms->add(*other.graph, other.labels);
    search = std::move(forms);
  }
  const double base =
      plan_->keep_all_cost > 0 ? plan_->keep_all_cost : plan_->simulation.one_pass_cost;
  const auto alternative = [&](Bytes budget, const Plan& plan) {
    const double overhead = base > 0 ? plan.simulation.cost / base - 1 : 0;
    return Alternative{budget, plan.predicted_peak(), overhead};
  };
  auto [budget, smallest] = search->smallest();
  const Bytes peak = plan_->predicted_peak();
  const Bytes budget_of_less = peak - peak / 10;
  const std::optional<BudgetPlans::Found> less = search->within(budget_of_less);
  // The search for the smallest budget is not exhaustive.
  if (less && less->plan.predicted_peak() < budget) {
    budget = less->plan.predicted_peak();
    smallest = *less;
  }
  Budgets budgets{
      search->bound(), alternative(budget, smallest.plan), smallest.peak_node, {}, {}, {}};
  budgets.holds_states = !loops_.steps.empty() && loops_.plans == nullptr;
  const auto within = [&](Bytes more) -> std::optional<Alternative> {
    const std::optional<BudgetPlans::Found> found = search->within(more);
    if (!found) return {};
    return alternative(more, found->plan);
  };
  if (less) budgets.less = alternative(budget_of_less, less->plan);
  budgets.more = within(peak + std::min<Bytes>(1 << 20, peak / 10));
  budgets.curve.push_back(budgets.smallest);
  const Bytes range = std::max<Bytes>(0, plan_->keep_all_peak - budget);
  for (int k = 1; k < points; ++k) {
    if (const auto point = within(budget + range * k / (points - 1))) {
      budgets.curve.push_back(*point);
    }
  }
  return budgets;
}

Bytes Explanation::metadata_bytes() const {
  Bytes bytes = labels_.metadata_bytes();
  for (const Form& other : others_) bytes += other.labels.metadata_bytes();
  if (loops_.plans != nullptr) bytes += loops_.plans->metadata_bytes();
  return bytes;
}

}  // namespace palimpsest
