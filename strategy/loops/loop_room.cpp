#include "strategy/loops/loop_room.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <string>

#include "checkpoint/chains/binomial.h"
#include "checkpoint/planners.h"
#include "strategy/forms.h"
#include "strategy/fusion/needs.h"
#include "strategy/fusion/signature.h"
#include "strategy/loops/loop_operation.h"
#include "strategy/loops/loop_run.h"
#include "strategy/profile.h"

namespace palimpsest {
namespace {

/// More states are of no use, or of little where the length is not known.
std::uint32_t most_snapshots(const Loop& loop) {
  constexpr std::uint32_t unknown = 1 << 20;
  return loop.has_condition() ? unknown : loop.snapshots();
}

Report::Loop described(const Tape& tape, const RecordedLoop& node, const LoopDivision& division) {
  const Loop& loop = node.loop();
  const Bytes room = snapshot_bytes(division.snapshots, loop);
  Report::Loop report{.name = tape.describe(node.forward),
                      .steps = loop.steps(),
                      .states = LoopLayout(room, loop).snapshots + 1,
                      .step_budget = division.share == unlimited ? 0 : division.share,
                      .recorded_again = loop.is_recorded_again()};
  if (loop.steps() > 0) {
    // The last step is run once more: what depends on the loop is differentiated before it is.
    const LoopWork work = work_of(loop, room);
    report.forward_steps = static_cast<std::uint64_t>(work.forward_steps) + 1;
    report.disk_writes = work.writes;
    report.disk_reads = work.reads;
  }
  return report;
}

/// The largest number up to `most` for which `fits` holds, as it does for 0; `guess` saves calls
/// where it is near.
std::uint32_t largest(std::uint32_t most, std::uint32_t guess,
                      const std::function<bool(std::uint32_t)>& fits) {
  std::uint32_t low = 0;
  std::uint32_t high = most + 1;
  const auto look = [&](std::uint32_t at) {
    if (at > low && at < high) (fits(at) ? low : high) = at;
  };
  look(guess);
  look(guess + 1);
  while (low + 1 < high) look(low + (high - low) / 2);
  return low;
}

/// Looks for the number of states, the same for all loops without a budget of their own, with which
/// the whole program costs least within its budget. Where there is none, steps are planned in a
/// share.
class Search {
 public:
  Search(Tape& tape, const LoweredStore::Request& request, const RunOptions& options,
         std::span<const RecordedLoop> loops, std::vector<LoopDivision>& divisions,
         std::vector<std::size_t> flexible)
      : tape_(tape),
        request_(request),
        options_(options),
        loops_(loops),
        divisions_(divisions),
        flexible_(std::move(flexible)) {}

  void run() {
    std::uint32_t most = 0;
    Bytes states = 0;
    for (const std::size_t i : flexible_) {
      const Loop& loop = loops_[i].loop();
      most = std::max(most, most_snapshots(loop));
      states += loop.codec().block().bytes;
    }
    states = std::max<Bytes>(states, 1);
    const Bytes budget = options_.memory_budget;
    const auto affordable = static_cast<std::uint32_t>(std::min<Bytes>(budget / states, most));
    if (affordable == most && keep_all_peak(most) <= budget) return;
    std::vector<std::uint32_t> candidates;
    Bytes least = keep_all_peak(0);
    if (least > budget) {
      packed_ = true;
      least = keep_all_peak(0);
    }
    if (least <= budget) {
      const auto guess =
          static_cast<std::uint32_t>(std::min<Bytes>((budget - least) / states, most));
      candidates.push_back(largest(
          affordable, guess, [&](std::uint32_t count) { return keep_all_peak(count) <= budget; }));
    }
    // More states may be worth computing other things again.
    for (std::uint32_t count = affordable; count > 0; count /= 4) candidates.push_back(count);
    candidates.push_back(0);
    const std::uint32_t best = cheapest(candidates);
    if (best != none) return set(best);
    share_ = narrow_share();
    candidates = {0};
    for (std::uint32_t count = affordable; count > 0; count /= 4) candidates.push_back(count);
    const std::uint32_t narrow = cheapest(candidates);
    set(narrow != none ? narrow : 0);
  }

 private:
  void set(std::uint32_t count) {
    for (const std::size_t i : flexible_) {
      divisions_[i] = {std::min(count, most_snapshots(loops_[i].loop())), share_};
      give_room(tape_, loops_[i], divisions_[i]);
    }
  }
  /// `none` where nothing fits.
  std::uint32_t cheapest(std::span<const std::uint32_t> candidates) {
    std::uint32_t best = none;
    double least_cost = std::numeric_limits<double>::infinity();
    for (const std::uint32_t count : candidates) {
      const double cost = planned_cost(count);
      if (cost < least_cost) best = count;
      least_cost = std::min(least_cost, cost);
    }
    return best;
  }
  /// The largest share with which no states beside the first fit, or the smallest there is.
  Bytes narrow_share() {
    Bytes low = 0;
    Bytes high = 0;
    for (const std::size_t i : flexible_) {
      low = std::max(low, smallest_share(loops_[i].gradients, request_.threads));
      high = std::max(high, largest_share(loops_[i].gradients, request_.threads));
    }
    // To one part in a hundred: steps are planned anew for each share that is tried.
    while (high - low > std::max<Bytes>(low / 100, 64)) {
      const Bytes middle = low + (high - low) / 2;
      share_ = middle;
      (planned_cost(0) < std::numeric_limits<double>::infinity() ? low : high) = middle;
    }
    return low;
  }
  Bytes keep_all_peak(std::uint32_t count) {
    set(count);
    RunOptions options = options_;
    options.fuse = may_fuse(options_);
    options.simplify = may_simplify(options_);
    options.planner = keep_all();
    options.memory_budget = unlimited;
    const Plan plan = plan_tape(tape_, request_, options).plan;
    return packed_ ? plan.keep_all_peak : plan.predicted_peak();
  }
  /// Infinite where nothing fits the budget.
  double planned_cost(std::uint32_t count) {
    set(count);
    try {
      return plan_tape(tape_, request_, options_).plan.simulation.cost;
    } catch (const BudgetError&) {
      return std::numeric_limits<double>::infinity();
    }
  }

  Tape& tape_;
  const LoweredStore::Request& request_;
  const RunOptions& options_;
  std::span<const RecordedLoop> loops_;
  std::vector<LoopDivision>& divisions_;
  std::vector<std::size_t> flexible_;
  Bytes share_ = unlimited;
  bool packed_ = false;  // there is no room for loops to run at once
};

/// All that what loops are given depends on.
std::vector<std::uint64_t> signature_of(const Tape& tape, const LoweredStore::Request& request,
                                        const RunOptions& options,
                                        std::span<const RecordedLoop> loops) {
  std::vector<std::uint64_t> signature;
  sign(tape, request.threads, signature);
  const auto put = [&](auto word) { signature.push_back(static_cast<std::uint64_t>(word)); };
  put(request.targets.size());
  for (const ValueId target : request.targets) put(target);
  for (const NodeId node : request.supplied) put(node);
  put(request.backward_begins);
  for (const RecordedLoop& loop : loops) {
    const LoopOptions& own = loop.loop().options();
    put(own.memory_budget);
    put(int{own.spill_options.compress} << 4 | int{own.check} << 3 | int{!own.spill.empty()} << 2 |
        static_cast<int>(own.codec));
    const DiskCosts costs = own.disk_costs.value_or(DiskCosts{-1, -1});
    put(std::bit_cast<std::uint64_t>(costs.write));
    put(std::bit_cast<std::uint64_t>(costs.read));
  }
  put(options.memory_budget);
  put(std::hash<std::string>()(planner_of(options)->key()));
  put(int{options.fuse} << 2 | int{options.simplify} << 1 | int{options.anomaly});
  put(options.costs != nullptr ? options.costs->hash() : 0);
  for (const double rate : {options.machine.flops_per_second, options.machine.bytes_per_second,
                            options.machine.seconds_per_node}) {
    put(std::bit_cast<std::uint64_t>(rate));
  }
  return signature;
}

}  // namespace

void LoopRoom::give(Tape& tape, const LoweredStore::Request& request, const RunOptions& options) {
  loops_.clear();
  take_room_from_loops(tape);
  if (!has_loop_gradients(tape)) return;
  const Needs needs(tape, request.targets, request.supplied);
  const std::vector<RecordedLoop> loops = differentiated_loops(tape, needs.needed);
  if (loops.empty()) return;

  std::vector<std::uint64_t> signature = signature_of(tape, request, options, loops);
  std::vector<LoopDivision> divisions = divisions_;
  if (signature != signature_) {
    divisions.assign(loops.size(), {});
    std::vector<std::size_t> flexible;
    for (std::size_t i = 0; i < loops.size(); ++i) {
      const bool limited = loops[i].loop().options().memory_budget != unlimited;
      if (limited || options.memory_budget == unlimited) {
        divisions[i] = own_division(loops[i].gradients, request.threads);
      } else {
        flexible.push_back(i);
      }
      give_room(tape, loops[i], divisions[i]);
    }
    if (!flexible.empty()) {
      Search(tape, request, options, loops, divisions, std::move(flexible)).run();
    }
    divisions_ = divisions;
    signature_ = std::move(signature);
  }
  for (std::size_t i = 0; i < loops.size(); ++i) {
    give_room(tape, loops[i], divisions[i]);
    loops_.push_back(described(tape, loops[i], divisions[i]));
  }
}

}  // namespace palimpsest
