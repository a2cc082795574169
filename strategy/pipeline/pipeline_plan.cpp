#include "strategy/pipeline/pipeline_plan.h"

#include <algorithm>
#include <map>
#include <string>

#include "autodiff/execute.h"
#include "strategy/forms.h"
#include "strategy/free_memory.h"

namespace palimpsest {
namespace {

/// Bytes of the sum of a parameter's gradients, and of what that is rounded to.
Bytes sum_bytes(const ValueType& type) {
  const Bytes sum = ValueType{type.shape, compute_dtype(type.dtype)}.bytes();
  return is_half(type.dtype) ? sum + type.bytes() : sum;
}

class PipelinePlanner {
 public:
  PipelinePlanner(const PipelineRequest& request, PiecePrograms& programs)
      : request_(request), programs_(programs), stages_(request.programs[0]->stages.size()) {}

  PipelinePlan plan() {
    std::vector<bool> again = least_again();
    const std::vector<Bytes> any(stages_, unlimited);
    PipelinePlan whole = with(again, any, true);
    keep_all_peak_ = whole.predicted_peak;
    keep_all_seconds_ = whole.seconds;
    for (const std::vector<PlacedPiece>& pieces : whole.programs) {
      std::uint32_t& computed = keep_all_computed_.emplace_back(0);
      for (const PlacedPiece& placed : pieces) {
        if (placed.program != nullptr) computed += placed.program->computed();
      }
    }
    Bytes budget = request_.pieces.run.memory_budget;
    if (takes_free_memory(request_.pieces.run)) {
      const auto free =
          budget_of_free_memory(keep_all_peak_, request_.kept, [] { return free_memory(); });
      budget = free.value_or(unlimited);
    }
    const bool always = request_.gradient == GradientMode::checkpointed;
    for (std::size_t stage = 0; stage <= stages_; ++stage) {
      const bool last = stage == stages_;
      if (!always || last) {
        PipelinePlan plan = always || stage > 0 ? with(again, any, false) : std::move(whole);
        if (plan.predicted_peak <= budget) return finished(std::move(plan), budget);
        if (last || request_.gradient == GradientMode::full || !has_backward()) {
          return finished(in_less(again, plan, budget), budget);
        }
      }
      again[stage] = true;
    }
    throw InternalError("a pipeline is not planned");
  }

 private:
  bool has_backward() const { return !request_.programs[0]->gradients.empty(); }

  /// Stages of loops, whose states lie in memory that no other piece knows of.
  std::vector<bool> least_again() const {
    std::vector<bool> again(stages_);
    for (const CutProgram* program : request_.programs) {
      for (std::size_t stage = 0; stage < stages_; ++stage) {
        if (!program->stages[stage].has_loop) continue;
        if (request_.gradient == GradientMode::full) {
          throw ArgumentError(
              "[pipeline] a stage with a loop computes it again for its adjoint, gradient = full "
              "nothing; choose automatic");
        }
        again[stage] = true;
      }
    }
    return again;
  }

  /// The plan of stages that keep or compute again, with workspaces up to `most`; `keep` says to
  /// compute nothing again within pieces.
  PipelinePlan with(const std::vector<bool>& again, std::span<const Bytes> most, bool keep) {
    PipelinePlan plan;
    plan.workspaces.assign(stages_, 0);
    for (const CutProgram* program : request_.programs) {
      std::vector<PlacedPiece>& placed = plan.programs.emplace_back();
      for (Piece& piece : pieces_of(*program, again)) {
        const auto stage = static_cast<std::size_t>(piece.stage);
        auto planned = piece.wanted.results.empty()
                           ? nullptr
                           : programs_.plan(piece, request_.pieces, most[stage], keep);
        if (planned != nullptr) {
          plan.workspaces[stage] = std::max(plan.workspaces[stage], aligned(planned->workspace()));
          if (program == request_.programs[0]) plan.seconds += planned->seconds();
        }
        placed.push_back({std::move(piece), std::move(planned), {}, {}});
      }
    }
    place(plan);
    describe(plan, again);
    return plan;
  }

  /// True when all programs make the gradient of each parameter in one stage.
  static bool agree_on_gradients(const PipelinePlan& plan) {
    std::map<std::size_t, int> stage_of;
    for (const std::vector<PlacedPiece>& pieces : plan.programs) {
      for (const PlacedPiece& placed : pieces) {
        for (const Piece::Result& result : placed.piece.results) {
          if (result.use != Piece::Result::Use::gradient) continue;
          const int stage = placed.piece.stage;
          if (stage_of.try_emplace(result.parameter, stage).first->second != stage) return false;
        }
      }
    }
    return true;
  }

  /// Gives what pieces hand to each other places, the same for all programs.
  void place(PipelinePlan& plan) const {
    const auto last_piece = static_cast<PieceId>(2 * stages_ - 1);
    plan.collects_at_end = request_.sums_gradients && !agree_on_gradients(plan);
    std::map<std::pair<PieceId, PieceId>, std::size_t> ring_of;
    for (std::vector<PlacedPiece>& pieces : plan.programs) {
      std::map<ValueId, PieceId> last;
      for (PieceId piece = 0; piece < pieces.size(); ++piece) {
        for (const ValueId value : pieces[piece].piece.arguments) last[value] = piece;
      }
      std::map<ValueId, PlacedPiece::Place> places;
      std::map<std::size_t, Bytes> used;  // by ring
      const auto take = [&](PieceId first, PieceId end, Bytes bytes) {
        const auto [found, is_new] = ring_of.try_emplace({first, end}, plan.rings.size());
        const std::size_t ring = found->second;
        if (is_new) plan.rings.push_back({.first = first, .last = end});
        const Bytes offset = used[ring];
        used[ring] += aligned(bytes);
        plan.rings[ring].bytes = std::max(plan.rings[ring].bytes, used[ring]);
        return PlacedPiece::Place{ring, offset};
      };
      for (PieceId piece = 0; piece < pieces.size(); ++piece) {
        PlacedPiece& placed = pieces[piece];
        for (const ValueId value : placed.piece.arguments) {
          placed.arguments.push_back(places.at(value));
        }
        for (std::size_t i = 0; i < placed.piece.results.size(); ++i) {
          const Piece::Result& result = placed.piece.results[i];
          const Bytes bytes = placed.piece.tape->bytes(placed.piece.wanted.results[i]);
          using Use = Piece::Result::Use;
          PlacedPiece::Place at{PlacedPiece::nowhere, 0};
          if (result.use == Use::other_pieces) {
            at = take(piece, last.at(result.value), bytes);
            places.emplace(result.value, at);
          } else if (result.use == Use::gradient && request_.sums_gradients) {
            at = take(piece, plan.collects_at_end ? last_piece : piece, bytes);
          }
          placed.results.push_back(at);
        }
      }
    }
    for (Ring& ring : plan.rings) {
      ring.places = request_.order.places(ring.first, ring.last);
      ring.begin = plan.block;
      plan.block += ring.places * ring.bytes;
    }
    for (const Bytes workspace : plan.workspaces) {
      plan.workspace_begins.push_back(plan.block);
      plan.block += workspace;
    }
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
    for (const Ring& ring : plan.rings) {
      const PieceId stage = std::min(ring.first, first.pieces() - 1 - ring.first);
      plan.stages[stage].predicted_peak += ring.places * ring.bytes;
    }
    for (const PlacedPiece& placed : plan.programs[0]) {
      Bytes& peak = plan.stages[static_cast<std::size_t>(placed.piece.stage)].predicted_peak;
      for (const Piece::Result& result : placed.piece.results) {
        const ValueType type = first.tape.type(result.value);
        if (result.use == Piece::Result::Use::outcome) peak += request_.outcomes;
        if (result.use != Piece::Result::Use::gradient) continue;
        peak += request_.sums_gradients ? sum_bytes(type) : type.bytes();
      }
    }
    for (const Report::Stage& stage : plan.stages) plan.predicted_peak += stage.predicted_peak;
  }

  /// The same plan in as many bytes as the budget has.
  PipelinePlan in_less(const std::vector<bool>& again, const PipelinePlan& plan, Bytes budget) {
    std::vector<Bytes> least(stages_);
    for (const std::vector<PlacedPiece>& pieces : plan.programs) {
      for (const PlacedPiece& placed : pieces) {
        Bytes& bytes = least[static_cast<std::size_t>(placed.piece.stage)];
        if (placed.program != nullptr)
          bytes = std::max(bytes, aligned(programs_.least(placed.piece, request_.pieces)));
      }
    }
    Bytes smallest = plan.predicted_peak;
    Bytes between = 0;
    for (std::size_t stage = 0; stage < stages_; ++stage) {
      least[stage] = std::min(least[stage], plan.workspaces[stage]);
      between += plan.workspaces[stage] - least[stage];
    }
    smallest -= between;
    if (budget < smallest) {
      throw BudgetError("[pipeline] " + std::to_string(stages_) +
                            " stages, with what they hand to "
                            "each other and sums of gradients, need a budget of " +
                            std::to_string(smallest) + " bytes, not " + std::to_string(budget) +
                            "; give more, or cut the batch into more micro-batches",
                        budget, smallest);
    }
    const double part = static_cast<double>(budget - smallest) / static_cast<double>(between);
    std::vector<Bytes> most;
    for (std::size_t stage = 0; stage < stages_; ++stage) {
      const auto more = static_cast<double>(plan.workspaces[stage] - least[stage]) * part;
      const auto step = static_cast<Bytes>(buffer_alignment);
      most.push_back(least[stage] + static_cast<Bytes>(more) / step * step);
    }
    return with(again, most, false);
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
  Bytes keep_all_peak_ = 0;
  double keep_all_seconds_ = 0;
  std::vector<std::uint32_t> keep_all_computed_;
};

}  // namespace

PipelinePlan plan_pipeline(const PipelineRequest& request, PiecePrograms& programs) {
  return PipelinePlanner(request, programs).plan();
}

}  // namespace palimpsest
