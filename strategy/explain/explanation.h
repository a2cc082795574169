#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "autodiff/export.h"
#include "checkpoint/plan.h"
#include "strategy/explain/budget_plans.h"
#include "strategy/explain/node_labels.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Answers questions about a plan: what is live at its peak and why, what it recomputes, and what
/// other budgets would cost. Immutable, and valid after the tape is destroyed. It shares graph and
/// plan with the compiled program.
class Explanation {
 public:
  /// The same program in another form, fused or not, in which it may run within other budgets.
  struct Form {
    std::shared_ptr<const Graph> graph;
    NodeLabels labels;
  };

  /// A differentiated loop.
  struct LoopSteps {
    std::string loop;        ///< scope and name of its node, or else its kind
    std::uint64_t run;       ///< forward steps that it runs, also to be differentiated
    std::uint64_t repeated;  ///< of these, those that a run without a budget does not take
    double seconds;          ///< predicted, of what it does in addition to such a run
  };
  /// The loops of a program, and its plans for budgets that are divided between their states and
  /// everything else. Without these plans, the loops hold the same states within every budget.
  struct Loops {
    std::vector<LoopSteps> steps = {};
    std::shared_ptr<const PlansOfProgram> plans = {};
  };

  /// `others` are the forms that `backward` compares with that of the plan, in its order.
  Explanation(std::shared_ptr<const Graph> graph, std::shared_ptr<const Plan> plan,
              PlannerPtr planner, NodeLabels labels, std::vector<Form> others, Loops loops);
  Explanation(std::shared_ptr<const Graph> graph, std::shared_ptr<const Plan> plan,
              PlannerPtr planner, NodeLabels labels, std::vector<Form> others = {})
      : Explanation(std::move(graph), std::move(plan), std::move(planner), std::move(labels),
                    std::move(others), Loops{}) {}

  /// Why a storage occupies memory during a step.
  enum class Reason : std::uint8_t {
    workspace,  ///< scratch bytes of the step's node
    made,       ///< the node makes it
    operand,    ///< the node is the last to read it
    read_later,
    result,  ///< the caller receives it
  };
  struct LiveStorage {
    NodeId node;  ///< that makes it
    Bytes bytes;
    Reason reason;
    NodeId reader;  ///< the next node that reads it; `none` without one
  };
  /// What is live during a compute step of the schedule, largest first.
  std::vector<LiveStorage> live_at(std::size_t step) const;

  /// The first compute step during which most bytes are live, and its node.
  std::size_t peak_step() const { return peak_step_; }
  NodeId peak_node() const { return plan_->schedule.steps[peak_step_].id; }

  struct Repeated {
    NodeId node;
    std::uint32_t runs;
    double seconds;  ///< predicted, of the runs beyond the first
  };
  /// The nodes that run more than once, those that take longest first.
  std::vector<Repeated> recomputed() const;
  /// The loops that run steps again, those that take longest first.
  std::vector<LoopSteps> repeated_steps() const;

  /// A plan that the same planner finds within another budget, in the cheapest form.
  struct Alternative {
    Bytes budget;
    Bytes peak;
    double overhead;  ///< as `Plan::compute_overhead`
  };
  struct Budgets {
    Bytes bound;                ///< a lower bound of every schedule's peak
    Alternative smallest;       ///< within the smallest feasible budget that the planner finds
    std::string smallest_node;  ///< during which most bytes are live then, as `describe` says
    std::optional<Alternative> less;  ///< 10 % less than this plan takes
    std::optional<Alternative> more;  ///< 1 MiB more, or 10 % more where that is less
    std::vector<Alternative> curve;   ///< `points` budgets, from the smallest to that of keep-all
    bool holds_states =
        false;  ///< all these are for loops that hold the same states as in the plan
  };
  /// Plans within other budgets, in the forms that `backward` compares. Takes as long as planning
  /// within each.
  Budgets other_budgets(int points) const;

  /// The graph that was planned, its plan, and what is known of its nodes. A fused group is one
  /// node.
  const Graph& graph() const { return *graph_; }
  const Plan& plan() const { return *plan_; }
  const NodeLabels& labels() const { return labels_; }
  /// True for a node of the backward part.
  bool is_backward(NodeId node) const {
    return graph_->backward_begins() && node >= *graph_->backward_begins();
  }
  /// `operation name (line)` of a node, as far as known.
  std::string describe(NodeId node) const { return labels_.describe(node); }

  /// Bytes of the labels, in addition to graphs and plan, which programs own too.
  Bytes metadata_bytes() const;

 private:
  std::shared_ptr<const Graph> graph_;
  std::shared_ptr<const Plan> plan_;
  PlannerPtr planner_;
  NodeLabels labels_;
  std::vector<Form> others_;
  Loops loops_;
  std::size_t peak_step_ = 0;
};

}  // namespace palimpsest
