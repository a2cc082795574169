#include "strategy/parallel/devices/device_plan.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <optional>
#include <string>

#include "strategy/base/free_memory.h"
#include "strategy/compile/form_choice.h"
#include "strategy/training/gradient_sums.h"

namespace palimpsest {
namespace {

/// The plan of one device.
struct Share {
  bool computes_again = false;
  DeviceMemory memory;
  std::vector<BufferProgramPtr> programs = {};  // by piece; null for pieces of
                                                // other devices
  std::vector<Workspace> workspaces = {};       // by piece
  Bytes block = 0;
  Bytes beside = 0;  // gradients and the outcome, outside the block
  double seconds = 0;

  Bytes peak() const { return block + beside; }
};

/// The refusal of a device's budget or, without one, of the budget of all devices.
class Refusal final : public BudgetError {
 public:
  static Refusal of_device(std::size_t device, Bytes budget, Bytes least) {
    const std::string message = "[devices] device " + std::to_string(device) +
                                " needs a budget of " + std::to_string(least) + " bytes, not " +
                                std::to_string(budget) + "; raise its budget, or place less on it";
    return {message, budget, least, device, 0};
  }
  static Refusal of_all(std::size_t devices, Bytes budget, Bytes least) {
    const std::string message = "[devices] " + std::to_string(devices) +
                                " devices need a budget of " + std::to_string(least) +
                                " bytes together, not " + std::to_string(budget) +
                                "; raise the budgets, or use smaller micro-batches";
    return {message, budget, least, {}, devices};
  }

  std::optional<std::size_t> device() const { return device_; }
  /// The same one, with another budget that is enough.
  Refusal naming(Bytes least) const {
    return device_ ? of_device(*device_, budget(), least) : of_all(devices_, budget(), least);
  }

 private:
  Refusal(const std::string& message, Bytes budget, Bytes least, std::optional<std::size_t> device,
          std::size_t devices)
      : BudgetError(message, budget, least), device_(device), devices_(devices) {}

  std::optional<std::size_t> device_;
  std::size_t devices_;
};

/// Plans a program for one placement and one cut.
class PlacementPlanner {
 public:
  PlacementPlanner(const DeviceRequest& request, DeviceCut cut, PiecePrograms& programs)
      : request_(request),
        programs_(programs),
        devices_(request.devices.size()),
        cut_(std::move(cut)) {
    for (const bool again : {false, true}) {
      pieces_[again] = pieces_of(request.program, cut_, std::vector<bool>(devices_, again));
    }
    for (std::size_t d = 0; d < devices_; ++d) {
      keep_all_.push_back(*share(d, has_backward() && cut_.has_loop[d], unlimited, true));
    }
  }

  /// Seconds of the plan without budgets. A plan within budgets is rarely faster.
  double seconds_without_budgets() {
    budgets_.assign(devices_, unlimited);
    return fastest().seconds;
  }

  DevicePlan plan() {
    budgets_.clear();
    for (const Device& device : request_.devices) budgets_.push_back(device.memory_budget);
    DevicePlan plan = fastest();
    Bytes all = request_.pieces.run.memory_budget;
    if (takes_free_memory(request_.pieces.run)) {
      const auto free =
          budget_of_free_memory(plan.predicted_peak, request_.kept, [] { return free_memory(); });
      all = free.value_or(unlimited);
    }
    Bytes taken = 0;
    for (const Report::Device& device : plan.devices) taken += device.predicted_peak;
    if (taken > all) {
      share_out(all, plan);
      plan = fastest();
    }
    plan.budget = all;
    return plan;
  }

 private:
  bool has_backward() const { return !request_.program.gradients.empty(); }

  /// The ways a device may be planned: keeping everything that its adjoints read (false),
  /// recomputing (true), or both.
  std::vector<bool> ways(std::size_t device) const {
    if (!has_backward()) return {false};
    if (request_.gradient == GradientMode::full) {
      if (!cut_.has_loop[device]) return {false};
      throw ArgumentError("[devices] device " + std::to_string(device) +
                          " recomputes a loop for adjoints that wait for another device, but "
                          "gradient = full forbids recomputation; choose gradient = automatic");
    }
    if (cut_.has_loop[device] || request_.gradient == GradientMode::checkpointed) return {true};
    return {false, true};
  }

  bool is_of(PieceId piece, std::size_t device) const {
    return cut_.pieces[piece].device == static_cast<int>(device);
  }

  /// Bytes outside the device's memory: the results that its pieces make for the caller.
  Bytes beside(std::span<const Piece> pieces, std::size_t device) const {
    Bytes bytes = 0;
    for (PieceId p = 0; p < pieces.size(); ++p) {
      if (!is_of(p, device)) continue;
      for (const Piece::Result& result : pieces[p].results) {
        if (result.use == Piece::Result::Use::other_pieces) continue;
        const ValueType type = request_.program.tape.type(result.value);
        bytes += type.bytes();
        const bool is_summed = result.use == Piece::Result::Use::gradient;
        if (is_summed && request_.sums_gradients) bytes += sum_bytes(type);
      }
    }
    return bytes;
  }

  /// The plan of a device within a budget; nothing where a piece does not fit.
  std::optional<Share> share(std::size_t device, bool again, Bytes budget, bool keep) {
    const std::vector<Piece>& pieces = pieces_[again];
    Share made{.computes_again = again,
               .memory = lay_out_device(request_.program, cut_, pieces, static_cast<int>(device))};
    made.beside = beside(pieces, device);
    for (const Interval& group : made.memory.groups) {
      made.block = std::max(made.block, group.offset + group.bytes);
    }
    made.programs.resize(pieces.size());
    made.workspaces.resize(pieces.size());
    if (made.peak() > budget) return {};
    for (PieceId p = 0; p < pieces.size(); ++p) {
      if (!is_of(p, device) || pieces[p].wanted.results.empty()) continue;
      const Bytes top = made.memory.top(DeviceTime::of_piece(cut_.pieces[p].level));
      const Bytes most = budget == unlimited ? unlimited : budget - made.beside - top;
      const OrRefusal<BufferProgramPtr> program =
          programs_.plan(pieces[p], request_.pieces, most, keep);
      if (!program && budget == unlimited) throw program.refusal();  // a loop's own budget
      if (!program) return {};
      made.programs[p] = *program;
      made.workspaces[p] = {top, laid_out(made.programs[p]->workspace())};
      made.block = std::max(made.block, top + made.workspaces[p].bytes);
      made.seconds += made.programs[p]->seconds();
    }
    return made;
  }

  /// The smallest budget with which a device can run.
  Bytes smallest(std::size_t device) {
    Bytes best = unlimited;
    for (const bool again : ways(device)) {
      const std::vector<Piece>& pieces = pieces_[again];
      const DeviceMemory memory =
          lay_out_device(request_.program, cut_, pieces, static_cast<int>(device));
      Bytes most = 0;
      for (const Interval& group : memory.groups) most = std::max(most, group.offset + group.bytes);
      for (PieceId p = 0; p < pieces.size(); ++p) {
        if (!is_of(p, device) || pieces[p].wanted.results.empty()) continue;
        const Bytes least = laid_out(programs_.least(pieces[p], request_.pieces));
        most = std::max(most, memory.top(DeviceTime::of_piece(cut_.pieces[p].level)) + least);
      }
      best = std::min(best, most + beside(pieces, device));
    }
    return best;
  }

  /// Divides a budget: each device gets its minimum. The rest is divided in proportion to what each
  /// took more than that in the plan `before`.
  void share_out(Bytes all, const DevicePlan& before) {
    std::vector<Bytes> least;
    Bytes least_of_all = 0;
    Bytes more_of_all = 0;
    const auto more = [&](std::size_t d) {
      return std::max<Bytes>(before.devices[d].predicted_peak - least[d], 0);
    };
    for (std::size_t d = 0; d < devices_; ++d) {
      least.push_back(smallest(d));
      least_of_all += least[d];
      more_of_all += more(d);
    }
    if (all < least_of_all) throw Refusal::of_all(devices_, all, least_of_all);
    const double part = more_of_all == 0 ? 0
                                         : static_cast<double>(all - least_of_all) /
                                               static_cast<double>(more_of_all);
    for (std::size_t d = 0; d < devices_; ++d) {
      const auto share = least[d] + static_cast<Bytes>(static_cast<double>(more(d)) * part);
      budgets_[d] = std::min(budgets_[d], share);
    }
  }

  /// The fastest combination of shares that fit their budgets. Every device keeps what it can,
  /// unless recomputing on one device takes less time.
  DevicePlan fastest() {
    std::vector<std::vector<Share>> fitting(devices_);
    std::vector<std::size_t> chosen(devices_, 0);
    for (std::size_t d = 0; d < devices_; ++d) {
      for (const bool again : ways(d)) {
        std::optional<Share> found = share(d, again, budgets_[d], false);
        if (found) fitting[d].push_back(std::move(*found));
      }
      if (fitting[d].empty()) refuse(d);
    }
    const auto together = [&] {
      std::vector<Share> shares;
      for (std::size_t d = 0; d < devices_; ++d) shares.push_back(fitting[d][chosen[d]]);
      return put_together(std::move(shares));
    };
    DevicePlan best = together();
    for (std::size_t d = 0; d < devices_; ++d) {
      if (fitting[d].size() < 2) continue;
      chosen[d] = 1;
      DevicePlan other = together();
      if (other.seconds < best.seconds) {
        best = std::move(other);
      } else {
        chosen[d] = 0;
      }
    }
    return best;
  }

  [[noreturn]] void refuse(std::size_t device) {
    throw Refusal::of_device(device, budgets_[device], smallest(device));
  }

  DevicePlan put_together(std::vector<Share> shares) const {
    std::vector<bool> again;
    for (const Share& share : shares) again.push_back(share.computes_again);
    std::vector<Piece> pieces = pieces_of(request_.program, cut_, again);
    std::vector<DeviceMemory> memories;
    DevicePlan plan;
    std::vector<Workspace> workspaces(pieces.size());
    std::vector<BufferProgramPtr> programs(pieces.size());
    for (std::size_t d = 0; d < devices_; ++d) {
      Share& share = shares[d];
      std::uint32_t computed = 0;
      std::uint32_t computed_once = 0;
      for (PieceId p = 0; p < pieces.size(); ++p) {
        if (!is_of(p, d)) continue;
        workspaces[p] = share.workspaces[p];
        programs[p] = share.programs[p];
        if (programs[p] != nullptr) computed += programs[p]->computed();
        const auto& keeps_all = keep_all_[d].programs[p];
        // If a loop must run again for its adjoints anyway, the pieces with adjoints do all the
        // work.
        if (keeps_all == nullptr || (keep_all_[d].computes_again && !pieces[p].is_backward)) {
          continue;
        }
        computed_once += keeps_all->computed();
        plan.keep_all_work_seconds += keeps_all->seconds();
      }
      plan.keep_all_computed += computed_once;
      memories.push_back(std::move(share.memory));
      plan.blocks.push_back(share.block);
      plan.predicted_peak += share.peak();
      plan.keep_all_peak += std::max(keep_all_[d].peak(), share.peak());
      plan.work_seconds += share.seconds;
      plan.devices.push_back({.seconds = share.seconds,
                              .computes_again = share.computes_again && computed > computed_once,
                              .budget = budgets_[d],
                              .predicted_peak = share.peak()});
    }
    plan.tasks = tasks_of(request_.program, cut_, pieces, memories, workspaces);
    for (std::size_t p = 0; p < pieces.size(); ++p) {
      const auto device = static_cast<std::size_t>(cut_.pieces[p].device);
      plan.pieces.push_back(
          placed(std::move(pieces[p]), programs[p], workspaces[p], memories[device]));
    }
    if (request_.sums_gradients) {
      for (const ValueId gradient : request_.program.gradients) {
        plan.predicted_peak -= sum_bytes(request_.program.tape.type(gradient));
        plan.keep_all_peak -= sum_bytes(request_.program.tape.type(gradient));
      }
    }
    find_seconds(plan);
    return plan;
  }

  static DevicePiece placed(Piece piece, BufferProgramPtr program, const Workspace& workspace,
                            const DeviceMemory& memory) {
    DevicePiece made{std::move(piece), std::move(program), workspace, {}, {}};
    for (const ValueId value : made.piece.arguments) {
      made.arguments.push_back(memory.places.at(value).offset);
    }
    for (const Piece::Result& result : made.piece.results) {
      const bool stays = result.use == Piece::Result::Use::other_pieces;
      made.results.push_back(stays ? memory.places.at(result.value).offset : DevicePiece::nowhere);
    }
    return made;
  }

  void find_seconds(DevicePlan& plan) const {
    const DeviceTasks& tasks = plan.tasks;
    std::vector<double> start(tasks.tasks.size());
    for (std::uint32_t t = 0; t < tasks.tasks.size(); ++t) {
      const DeviceTask& task = tasks.tasks[t];
      double end = start[t];
      if (task.piece == none) {
        end += seconds_of_transfer(task.bytes());
        plan.devices[static_cast<std::size_t>(task.device)].incoming += task.bytes();
      } else if (const auto& program = plan.pieces[task.piece].program; program != nullptr) {
        end += program->seconds() / request_.pieces.threads;
      }
      plan.seconds = std::max(plan.seconds, end);
      for (const std::uint32_t next : tasks.edges.successors(t)) {
        start[next] = std::max(start[next], end);
      }
    }
    plan.seconds = std::max(plan.seconds, plan.work_seconds / request_.threads);
  }

  const DeviceRequest& request_;
  PiecePrograms& programs_;
  std::size_t devices_;
  DeviceCut cut_;
  std::vector<Piece> pieces_[2];  // if no device recomputes, and if all do
  std::vector<Share> keep_all_;   // by device
  std::vector<Bytes> budgets_;    // by device
};

/// How full the fullest device is: relative to its budget or, if some have no budget, in bytes.
double fullest(const DevicePlan& plan) {
  const bool all_limited = std::ranges::none_of(
      plan.devices, [](const Report::Device& device) { return device.budget == unlimited; });
  double most = 0;
  for (const Report::Device& device : plan.devices) {
    const auto peak = static_cast<double>(device.predicted_peak);
    most = std::max(most, all_limited ? peak / static_cast<double>(device.budget) : peak);
  }
  return most;
}

std::vector<DeviceCut> possible_cuts(const DeviceRequest& request, const Elements& elements) {
  const bool has_budget = request.pieces.run.memory_budget != unlimited;
  std::vector<DeviceCut> cuts;
  for (const DevicePlacement& placement :
       possible_placements(request.program, elements, request.devices, has_budget)) {
    const auto cut = [&](Sending sending) {
      return cut_for_devices(request.program, elements, placement, request.devices.size(), sending);
    };
    cuts.push_back(cut(Sending::late));
    DeviceCut early = cut(Sending::early);
    if (early.pieces.size() > cuts.back().pieces.size()) cuts.push_back(std::move(early));
  }
  return cuts;
}

/// Plans within the budgets of the request, or throws the refusal that names the least.
DevicePlan plan_within(const DeviceRequest& request, const Elements& elements,
                       PiecePrograms& programs) {
  constexpr double more = 1.05;
  double fastest = std::numeric_limits<double>::infinity();
  std::vector<DevicePlan> plans;
  std::optional<Refusal> too_small;
  std::exception_ptr refusal;
  for (DeviceCut& cut : possible_cuts(request, elements)) {
    try {
      PlacementPlanner planner(request, std::move(cut), programs);
      if (!plans.empty() && planner.seconds_without_budgets() > more * fastest) continue;
      plans.push_back(planner.plan());
      fastest = std::min(fastest, plans.back().seconds);
    } catch (const Refusal& error) {
      if (!too_small || error.smallest_feasible() < too_small->smallest_feasible()) {
        too_small.emplace(error);
      }
    } catch (const BudgetError&) {  // a loop's own budget
      refusal = std::current_exception();
    } catch (const ArgumentError&) {
      refusal = std::current_exception();
    }
  }
  if (plans.empty() && too_small) throw *too_small;
  if (plans.empty()) std::rethrow_exception(refusal);
  const DevicePlan* best = nullptr;
  for (const DevicePlan& plan : plans) {
    if (plan.seconds > more * fastest) continue;
    if (best == nullptr || fullest(plan) < fullest(*best)) best = &plan;
  }
  return *best;
}

/// Another budget may place the program otherwise. So a refusal is asked again with the budget that
/// it names, until that is enough or something else is too small.
Refusal with_enough(const Refusal& first, const DeviceRequest& request, const Elements& elements,
                    PiecePrograms& programs) {
  std::vector<Device> devices(request.devices.begin(), request.devices.end());
  DeviceRequest raised{request.program,        devices,      request.gradient, request.pieces,
                       request.sums_gradients, request.kept, request.threads};
  Bytes least = first.smallest_feasible();
  constexpr int most_questions = 8;
  for (int i = 0; i < most_questions; ++i) {
    (first.device() ? devices[*first.device()].memory_budget : raised.pieces.run.memory_budget) =
        least;
    try {
      plan_within(raised, elements, programs);
      break;
    } catch (const Refusal& next) {
      if (next.device() != first.device() || next.smallest_feasible() <= least) break;
      least = next.smallest_feasible();
    } catch (const std::exception&) {
      break;  // another placement has another problem
    }
  }
  return first.naming(least);
}

}  // namespace

DevicePlan plan_devices(const DeviceRequest& request, PiecePrograms& programs) {
  const PiecePrograms::Session session(programs);
  const Elements elements(request.program);
  try {
    return plan_within(request, elements, programs);
  } catch (const Refusal& refusal) {
    throw with_enough(refusal, request, elements, programs);
  }
}

}  // namespace palimpsest
