#include "strategy/parallel/pipeline/pipeline_plan.h"

#include <algorithm>
#include <string>

#include "autodiff/execute.h"
#include "strategy/compile/form_choice.h"
#include "strategy/training/gradient_sums.h"

namespace palimpsest {
namespace {

class PipelinePlanner {
 public:
  PipelinePlanner(const PipelineRequest& request, PiecePrograms& programs)
      : request_(request), programs_(programs), stages_(request.programs[0]->stages.size()) {}

  PipelinePlan plan() {
    const std::vector<bool> least = least_again();
    const std::vector<Bytes> any(stages_, unlimited);
    for (const CutProgram* program : request_.programs) {
      if (request_.stage) common_.push_back(pieces_of(*program, least));
    }
    PipelinePlan whole = with({least, true}, any, true);
    keep_all_peak_ = whole.predicted_peak;
    for (const PlacedPiece& placed : whole.programs[0]) {
      if (placed.program != nullptr && !is_run_again(placed, least)) {
        keep_all_seconds_ += placed.program->seconds();
      }
    }
    for (const std::vector<PlacedPiece>& pieces : whole.programs) {
      std::uint32_t& computed = keep_all_computed_.emplace_back(0);
      for (const PlacedPiece& placed : pieces) {
        if (placed.program != nullptr && !is_run_again(placed, least)) {
          computed += placed.program->computed();
        }
      }
    }
    Bytes budget = request_.pieces.run.memory_budget;
    if (takes_free_memory(request_.pieces.run)) {
      const auto free = budget_of_free_memory(keep_all_peak_, request_.kept, request_.free);
      budget = free.value_or(unlimited);
    }
    std::vector<Choice> choices = choices_from(least);
    std::vector<Tried> tried;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      const bool is_whole = i == 0 && request_.gradient != GradientMode::checkpointed;
      // NOLINTNEXTLINE(bugprone-use-after-move): only the first choice is whole
      PipelinePlan plan = is_whole ? std::move(whole) : with(choices[i], any, false);
      if (plan.predicted_peak <= budget) return finished(std::move(plan), budget);
      tried.push_back({std::move(choices[i]), std::move(plan)});
    }
    return finished(in_less(tried, budget), budget);
  }

 private:
  struct Choice {
    std::vector<bool> again;  // by stage: runs forward again
    bool receives_ahead;
  };

  struct Tried {
    Choice choice;
    PipelinePlan plan;
    std::vector<Bytes> least = {};  // smallest workspaces, by stage
    Bytes between = 0;              // bytes saved by these
  };

  /// All choices, from the one that computes least to the one that computes most.
  std::vector<Choice> choices_from(std::vector<bool> again) const {
    std::vector<Choice> choices;
    const auto add = [&] {
      choices.push_back({again, true});
      if (request_.stage) choices.push_back({again, false});
    };
    const bool always = request_.gradient == GradientMode::checkpointed;
    if (!always) add();
    if (request_.gradient == GradientMode::full || !has_backward()) return choices;
    for (std::size_t stage = 0; stage < stages_; ++stage) {
      if (!is_own(stage)) continue;
      again[stage] = true;
      if (!always) add();
    }
    if (always) add();
    return choices;
  }

  /// Whether it is the forward part of a stage that must run again for its adjoints, whatever is
  /// kept.
  static bool is_run_again(const PlacedPiece& placed, const std::vector<bool>& least) {
    return !placed.piece.is_backward && least[static_cast<std::size_t>(placed.piece.stage)];
  }

  bool is_own(std::size_t stage) const {
    return !request_.stage || static_cast<int>(stage) == *request_.stage;
  }
  bool has_backward() const { return !request_.programs[0]->gradients.empty(); }

  /// Stages with loops: their states are in memory that no other piece can access.
  std::vector<bool> least_again() const {
    std::vector<bool> again(stages_);
    for (const CutProgram* program : request_.programs) {
      for (std::size_t stage = 0; stage < stages_; ++stage) {
        if (!program->stages[stage].has_loop) continue;
        if (request_.gradient == GradientMode::full) {
          throw ArgumentError(
              "[pipeline] a stage recomputes a loop for its adjoint, but gradient = full forbids "
              "recomputation; choose gradient = automatic");
        }
        again[stage] = true;
      }
    }
    return again;
  }

  /// The plan of a choice, with workspaces of at most `most` bytes. With `keep`, pieces recompute
  /// nothing.
  PipelinePlan with(const Choice& choice, std::span<const Bytes> most, bool keep) {
    PipelinePlan plan;
    plan.stage = request_.stage;
    plan.workspaces.assign(stages_, 0);
    for (const CutProgram* program : request_.programs) {
      std::vector<PlacedPiece>& placed = plan.programs.emplace_back();
      for (Piece& piece : pieces_of(*program, choice.again)) {
        const auto stage = static_cast<std::size_t>(piece.stage);
        const bool runs = is_own(stage) && !piece.wanted.results.empty();
        BufferProgramPtr planned;
        if (runs) planned = programs_.plan(piece, request_.pieces, most[stage], keep).take();
        if (planned != nullptr) {
          plan.workspaces[stage] = std::max(plan.workspaces[stage], aligned(planned->workspace()));
          if (program == request_.programs[0]) plan.seconds += planned->seconds();
        }
        placed.push_back({.piece = std::move(piece), .program = std::move(planned)});
      }
    }
    plan.layout = lay_out(
        {request_.order, request_.sums_gradients, request_.stage, common_, choice.receives_ahead},
        plan.programs);
    plan.block = plan.layout.bytes;
    for (const Bytes workspace : plan.workspaces) {
      plan.workspace_begins.push_back(plan.block);
      plan.block += workspace;
    }
    describe(plan, choice.again);
    for (std::vector<PlacedPiece>& pieces : plan.programs) {
      for (PlacedPiece& placed : pieces) {
        if (!is_own(static_cast<std::size_t>(placed.piece.stage))) placed = {};
      }
    }
    return plan;
  }

  void describe(PipelinePlan& plan, const std::vector<bool>& again) const {
    const CutProgram& first = *request_.programs[0];
    for (std::size_t s = 0; s < stages_; ++s) {
      const CutProgram::Stage& stage = first.stages[s];
      plan.stages.push_back({.forward_seconds = stage.forward,
                             .backward_seconds = stage.backward,
                             .incoming = stage.incoming,
                             .in_flight = request_.order.in_flight(static_cast<int>(s)),
                             .computes_again = has_backward() && again[s],
                             .predicted_peak = plan.workspaces[s]});
    }
    for (const Ring& ring : plan.layout.rings) {
      const PieceId stage = std::min(ring.first, first.pieces() - 1 - ring.first);
      plan.stages[stage].predicted_peak += ring.places * ring.bytes;
    }
    // At the end a process also has what other processes made.
    const auto peak_beside = [&](int stage) -> Bytes& {
      return plan.stages[static_cast<std::size_t>(request_.stage.value_or(stage))].predicted_peak;
    };
    peak_beside(plan.layout.outcome_stages[0]) += request_.outcomes;
    for (std::size_t i = 0; i < request_.outputs.size(); ++i) {
      peak_beside(plan.layout.output_stages[0][i]) += request_.outputs[i];
    }
    for (std::size_t i = 0; i < first.gradients.size(); ++i) {
      const ValueType type = first.tape.type(first.gradients[i]);
      const int stage = plan.layout.gradient_stages[i];
      const bool is_summed = request_.sums_gradients && is_own(static_cast<std::size_t>(stage));
      peak_beside(stage) += is_summed ? sum_bytes(type) : type.bytes();
    }
    for (const Report::Stage& stage : plan.stages) plan.predicted_peak += stage.predicted_peak;
  }

  /// Finds the smallest workspaces of the stages.
  void find_least(Tried& tried) {
    tried.least.assign(stages_, 0);
    for (const std::vector<PlacedPiece>& pieces : tried.plan.programs) {
      for (const PlacedPiece& placed : pieces) {
        Bytes& bytes = tried.least[static_cast<std::size_t>(placed.piece.stage)];
        if (placed.program == nullptr) continue;
        bytes = std::max(bytes, aligned(programs_.least(placed.piece, request_.pieces)));
      }
    }
    tried.between = 0;
    for (std::size_t stage = 0; stage < stages_; ++stage) {
      tried.least[stage] = std::min(tried.least[stage], tried.plan.workspaces[stage]);
      tried.between += tried.plan.workspaces[stage] - tried.least[stage];
    }
  }

  /// The fastest plan that fits the budget with smaller workspaces. A single stage tries all
  /// choices. All stages together try only the first, which recomputes nothing, and the last.
  PipelinePlan in_less(std::span<Tried> tried, Bytes budget) {
    Bytes smallest = unlimited;
    std::optional<PipelinePlan> best;
    const std::size_t stride = request_.stage ? 1 : std::max<std::size_t>(tried.size() - 1, 1);
    for (std::size_t i = 0; i < tried.size(); i += stride) {
      find_least(tried[i]);
      const Bytes least_peak = tried[i].plan.predicted_peak - tried[i].between;
      smallest = std::min(smallest, least_peak);
      if (least_peak > budget) continue;
      PipelinePlan plan = in_less(tried[i], budget - least_peak);
      if (!best || plan.seconds < best->seconds) best = std::move(plan);
    }
    if (best) return std::move(*best);
    for (const Tried& each : tried) smallest = std::min(smallest, each.plan.predicted_peak);
    const std::string who =
        request_.stage
            ? "stage " + std::to_string(*request_.stage) + " of " + std::to_string(stages_) +
                  ", with its inputs, its outputs and all gradients, needs"
            : std::to_string(stages_) +
                  " stages, with the values they exchange and gradient sums, need";
    throw BudgetError("[pipeline] " + who + " a budget of " + std::to_string(smallest) +
                          " bytes, not " + std::to_string(budget) +
                          "; raise the budget, or cut the batch into more micro-batches",
                      budget, smallest);
  }

  /// The same choice, with `spare` bytes more than the smallest workspaces take.
  PipelinePlan in_less(const Tried& tried, Bytes spare) {
    const double part = static_cast<double>(spare) / static_cast<double>(tried.between);
    std::vector<Bytes> most;
    for (std::size_t stage = 0; stage < stages_; ++stage) {
      const auto more =
          static_cast<double>(tried.plan.workspaces[stage] - tried.least[stage]) * part;
      const auto step = static_cast<Bytes>(buffer_alignment);
      most.push_back(tried.least[stage] + static_cast<Bytes>(more) / step * step);
    }
    return with(tried.choice, most, false);
  }

  PipelinePlan finished(PipelinePlan plan, Bytes budget) const {
    plan.budget = budget;
    plan.keep_all_peak = std::max(keep_all_peak_, plan.predicted_peak);
    plan.keep_all_seconds = keep_all_seconds_;
    plan.keep_all_computed = keep_all_computed_;
    if (budget == unlimited) return plan;
    const double spare = static_cast<double>(budget) / static_cast<double>(plan.predicted_peak);
    for (Report::Stage& stage : plan.stages) {
      const double share = static_cast<double>(stage.predicted_peak) * spare;
      stage.budget = std::max(stage.predicted_peak, static_cast<Bytes>(share));
    }
    return plan;
  }

  const PipelineRequest& request_;
  PiecePrograms& programs_;
  std::size_t stages_;
  std::vector<std::vector<Piece>> common_;  // by program; used where other processes run the other
                                            // stages
  Bytes keep_all_peak_ = 0;
  double keep_all_seconds_ = 0;
  std::vector<std::uint32_t> keep_all_computed_;
};

}  // namespace

PipelinePlan plan_pipeline(const PipelineRequest& request, PiecePrograms& programs) {
  const PiecePrograms::Session session(programs);
  return PipelinePlanner(request, programs).plan();
}

}  // namespace palimpsest
