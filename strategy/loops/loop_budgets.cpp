#include "strategy/loops/loop_budgets.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "checkpoint/chains/binomial.h"
#include "checkpoint/engine_planner.h"
#include "checkpoint/planners.h"
#include "strategy/base/profile.h"
#include "strategy/compile/form_choice.h"
#include "strategy/compile/fusion/fingerprint.h"
#include "strategy/compile/fusion/needs.h"
#include "strategy/loops/kept_values.h"
#include "strategy/loops/loop_ahead.h"
#include "strategy/loops/loop_operation.h"
#include "strategy/loops/loop_run.h"

namespace palimpsest {
namespace {

Report::Loop described(const Tape& tape, const RecordedLoop& node, const LoopDivision& division,
                       int threads) {
  const Loop& loop = node.loop();
  const Bytes room = snapshot_bytes(division.snapshots, loop);
  const bool keeps = division.kept > 0;
  const bool is_whole = division.share >= largest_share(node.gradients, threads);
  Report::Loop report{.name = tape.describe(node.forward),
                      .steps = loop.steps(),
                      .states = keeps ? loop.steps() : LoopLayout(room, loop).snapshots + 1,
                      .kept_steps = division.kept,
                      .step_budget = is_whole ? 0 : division.share,
                      .ahead = division.ahead,
                      .recorded_again = loop.is_recorded_again()};
  if (keeps) {
    report.forward_steps = 2 * std::uint64_t{loop.steps()} - division.kept;
  } else if (loop.steps() > 0) {
    // The last step runs once more, since everything that depends on the loop is differentiated
    // first.
    const LoopWork work = work_of(loop, room);
    report.forward_steps = static_cast<std::uint64_t>(work.forward_steps) + 1;
    report.disk_writes = work.writes;
    report.disk_reads = work.reads;
  }
  return report;
}

/// The largest number up to `most` for which `fits` holds. It must hold for 0. A good `guess` saves
/// calls.
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

/// True if there are more threads than backward parts, which may run in parallel.
bool leaves_threads_idle(std::span<const RecordedLoop> loops, int threads) {
  std::ptrdiff_t parts = 0;
  for (const RecordedLoop& loop : loops) parts += std::ssize(loop.gradients);
  return parts < threads;
}

/// Searches for the number of states with which the whole program costs least within its budget.
/// The number is the same for all loops without a budget of their own. If it is small, the search
/// also tries smaller memory shares for the steps.
class Search {
 public:
  Search(Tape& tape, const ProgramSpec& spec, const RunOptions& options,
         std::span<const RecordedLoop> loops, std::vector<LoopDivision>& divisions,
         std::span<const KeptValues* const> values, std::vector<std::size_t> flexible)
      : tape_(tape),
        spec_(spec),
        options_(options),
        loops_(loops),
        divisions_(divisions),
        values_(values),
        flexible_(std::move(flexible)),
        ahead_(loops.size()) {}

  void run() {
    std::uint32_t most = 0;
    for (const std::size_t i : flexible_) {
      const Loop& loop = loops_[i].loop();
      most = std::max(most, most_snapshots(loop));
      state_bytes_ += loop.codec().block().stride;
    }
    state_bytes_ = std::max<Bytes>(state_bytes_, 1);
    const auto affordable =
        static_cast<std::uint32_t>(std::min(options_.memory_budget / state_bytes_, Bytes{most}));
    if (affordable == most && keeps_all({most})) return keep_values(most);
    LoopDivision best;
    double least_cost = std::numeric_limits<double>::infinity();
    std::vector<LoopDivision> tried;
    const auto consider = [&](const LoopDivision& choice) {
      if (std::ranges::find(tried, choice) != tried.end()) return;
      tried.push_back(choice);
      const double cost = planned_cost(choice);
      if (cost < least_cost) best = choice;
      least_cost = std::min(least_cost, cost);
    };
    const std::uint32_t most_fitting = fitting(affordable, unlimited);
    consider({most_fitting});
    // More states may be worth recomputing other values.
    for (std::uint32_t count = affordable; count > 0; count /= 4) consider({count});
    consider({0});
    // If states are few, recomputing parts of steps may be worth it too.
    if (most_fitting < std::min(most, few_states)) {
      for (const Bytes share : shares()) consider({fitting(affordable, share), share});
    }
    // A planner may take more than keep-all does. If nothing fits, the refusal names a budget for
    // what takes the least.
    if (!std::isfinite(least_cost)) {
      const std::vector<Bytes> smaller = shares();
      for (const Bytes share : smaller) consider({0, share});
      if (!std::isfinite(least_cost)) best = {0, least_share(smaller)};
    }
    set(best);
    if (leaves_threads_idle(loops_, spec_.threads)) make_states_ahead(best);
  }

 private:
  /// The number of states that fit in addition to everything else without recomputation. 0 if even
  /// that does not fit.
  std::uint32_t fitting(std::uint32_t most, Bytes share) {
    const Bytes budget = options_.memory_budget;
    const Bytes least = keep_all_peak({0, share});
    if (least > budget) return 0;
    constexpr Bytes line = buffer_alignment;
    const Bytes room = (budget - least) / line * line;
    const auto guess = static_cast<std::uint32_t>(std::min(room / state_bytes_, Bytes{most}));
    return largest(most, guess,
                   [&](std::uint32_t count) { return keep_all_peak({count, share}) <= budget; });
  }
  /// True if the planner keeps everything. False does not mean that no plan fits.
  bool keeps_all(const LoopDivision& division) {
    const PlannerPtr planner = planner_of(options_);
    if (!engine_part(planner).accepts_keep_all()) return false;
    const Bytes peak = keep_all_peak(division);
    return peak <= engine_part(planner).limit(peak, options_.memory_budget);
  }
  /// Uses memory that is left when all states are held for values of steps.
  void keep_values(std::uint32_t snapshots) {
    Bytes bytes = 0;  // of a step of each loop
    std::uint32_t most = 0;
    for (const std::size_t i : flexible_) {
      if (values_[i] == nullptr) continue;
      bytes += values_[i]->block.stride;
      most = std::max(most, loops_[i].loop().steps());
    }
    if (most == 0) return;
    const Bytes budget = options_.memory_budget;
    most = static_cast<std::uint32_t>(std::min(budget / bytes, Bytes{most}));
    const Bytes rest = budget - keep_all_peak({.snapshots = snapshots, .kept = 1});
    const auto guess =
        static_cast<std::uint32_t>(std::clamp(1 + rest / bytes, Bytes{0}, Bytes{most}));
    const std::uint32_t kept = largest(most, guess, [&](std::uint32_t count) {
      return keeps_all({.snapshots = snapshots, .kept = count});
    });
    set({.snapshots = snapshots, .kept = kept});
  }
  /// Gives up some states to compute others ahead of time, if that makes the loops faster. Only for
  /// programs in which nothing except loops recomputes.
  void make_states_ahead(const LoopDivision& division) {
    if (!keeps_all(division)) return;
    const double before = reversal_seconds();
    for (const std::size_t i : flexible_) {
      ahead_[i] = states_ahead(loops_[i].gradients, divisions_[i], spec_.threads);
    }
    if (std::ranges::count(ahead_, 0u) == std::ssize(ahead_)) return;
    const std::uint32_t fewer = fitting(division.snapshots, division.share);
    if (keeps_all({fewer, division.share}) && reversal_seconds() < before) return;
    std::ranges::fill(ahead_, 0);
    set(division);
  }
  double reversal_seconds() const {
    double sum = 0;
    for (const std::size_t i : flexible_) {
      sum += palimpsest::reversal_seconds(loops_[i].gradients, divisions_[i], spec_.threads);
    }
    return sum;
  }
  /// The step shares to try; the smallest possible one comes last.
  std::vector<Bytes> shares() const {
    Bytes low = 0;
    Bytes high = 0;
    for (const std::size_t i : flexible_) {
      low = std::max(low, smallest_share(loops_[i].gradients, spec_.threads));
      high = std::max(high, largest_share(loops_[i].gradients, spec_.threads));
    }
    return shares_between(low, high);
  }
  /// The share with which the loops take least, one of these or no limit. Where a step recomputes
  /// less, it may make more adjoints in place.
  Bytes least_share(std::vector<Bytes> shares) const {
    std::ranges::reverse(shares);
    shares.push_back(unlimited);
    const auto bytes = [&](Bytes share) {
      Bytes most = 0;
      for (const std::size_t i : flexible_) {
        most = std::max(most,
                        bytes_beside_states(loops_[i].gradients, {.share = share}, spec_.threads));
      }
      return most;
    };
    return *std::ranges::min_element(shares, {}, bytes);
  }
  void set(const LoopDivision& division) {
    for (const std::size_t i : flexible_) {
      divisions_[i] = division;
      divisions_[i].snapshots = std::min(division.snapshots, most_snapshots(loops_[i].loop()));
      divisions_[i].ahead = ahead_[i];
      divisions_[i].kept = 0;
      if (division.kept > 0 && values_[i] != nullptr) {
        const Loop& loop = loops_[i].loop();
        divisions_[i].kept = std::min(division.kept, loop.steps());
        divisions_[i].values = values_[i]->key;
        // In whole cache lines, a few more values may fit.
        divisions_[i].kept = kept_in(held_bytes(loop, divisions_[i]), loop, *values_[i]);
      }
      give_state_budget(tape_, loops_[i], divisions_[i]);
    }
  }
  Bytes keep_all_peak(const LoopDivision& division) {
    set(division);
    RunOptions options = options_;
    options.fuse = may_fuse(options_);
    options.simplify = may_simplify(options_);
    options.planner = keep_all();
    options.memory_budget = unlimited;
    return plan_tape(tape_, spec_, options)->plan.keep_all_peak;
  }
  /// Infinite if nothing fits the budget.
  double planned_cost(const LoopDivision& division) {
    set(division);
    return planned_seconds(tape_, spec_, options_);
  }

  Tape& tape_;
  const ProgramSpec& spec_;
  const RunOptions& options_;
  std::span<const RecordedLoop> loops_;
  std::vector<LoopDivision>& divisions_;
  std::span<const KeptValues* const> values_;  // worth keeping, by loop; may be null
  std::vector<std::size_t> flexible_;
  std::vector<std::uint32_t> ahead_;  // by loop
  Bytes state_bytes_ = 0;             // of one state of each flexible loop
};

/// Everything that the division of the budget between loops depends on.
std::vector<std::uint64_t> fingerprint_of(const Tape& tape, const ProgramSpec& spec,
                                          const RunOptions& options,
                                          std::span<const RecordedLoop> loops,
                                          std::span<const KeptValues* const> values) {
  std::vector<std::uint64_t> fingerprint;
  append_fingerprint(tape, spec.threads, fingerprint);
  const auto put = [&](auto word) { fingerprint.push_back(static_cast<std::uint64_t>(word)); };
  put(spec.targets.size());
  for (const ValueId target : spec.targets) put(target);
  for (const NodeId node : spec.held) put(node);
  put(spec.backward_begins);
  for (const RecordedLoop& loop : loops) {
    const LoopOptions& own = loop.loop().options();
    put(own.memory_budget);
    put(own.resume.empty() ? 0 : 1);
    put(int{own.spill_options.compress} << 4 | int{own.check} << 3 | int{!own.spill.empty()} << 2 |
        static_cast<int>(own.codec));
    const DiskCosts costs = own.disk_costs.value_or(DiskCosts{-1, -1});
    put(std::bit_cast<std::uint64_t>(costs.write));
    put(std::bit_cast<std::uint64_t>(costs.read));
  }
  for (const KeptValues* each : values) put(each != nullptr ? each->key : 0);
  put(options.memory_budget);
  put(std::hash<std::string>()(planner_of(options)->key()));
  put(int{options.fuse} << 2 | int{options.simplify} << 1 | int{options.anomaly});
  put(options.costs != nullptr ? options.costs->hash() : 0);
  append_fingerprint(options.machine, fingerprint);
  return fingerprint;
}

}  // namespace

std::vector<Report::Loop> reports_of(std::span<const LoopOfRun> loops,
                                     const RunScope::Notes& notes) {
  std::vector<Report::Loop> reports;
  for (const auto& [planned, loop] : loops) {
    Report::Loop& report = reports.emplace_back(planned);
    const auto note = notes.find(loop);
    if (note == notes.end()) continue;
    const auto& counts = static_cast<const LoopCounts&>(*note->second);
    report.records = counts.records;
    report.resumed = counts.resumed;
    report.states_repaired = counts.states_repaired;
    if (!counts.are_counted) continue;
    report.steps = static_cast<std::uint32_t>(counts.steps);
    report.forward_steps = counts.forward_steps;
    report.disk_writes = counts.disk_writes;
    report.disk_reads = counts.disk_reads;
  }
  return reports;
}

std::optional<BudgetError> LoopBudgets::reserve(Tape& tape, const ProgramSpec& spec,
                                                const RunOptions& options) {
  try {
    decide(tape, spec, options);
    return {};
  } catch (const BudgetError& refusal) {  // a loop's own budget is too small
    return refusal;
  }
}

void LoopBudgets::decide(Tape& tape, const ProgramSpec& spec, const RunOptions& options) {
  loops_.clear();
  withheld_ = 0;
  take_state_budgets(tape);
  if (!has_loop_gradients(tape)) return;
  const Needs needs(tape, spec.targets, spec.held);
  const std::vector<RecordedLoop> loops = differentiated_loops(tape, needs.needed);
  if (loops.empty()) return;

  // Loops of a tape that was recorded again do not know these yet.
  std::vector<const KeptValues*> values(loops.size());
  for (std::size_t i = 0; keeps_ != Keeps::states && i < loops.size(); ++i) {
    // The rest of a loop's own budget may be more than the run has.
    const bool has_budget = loops[i].loop().options().memory_budget != unlimited;
    if (has_budget && options.memory_budget != unlimited) continue;
    values[i] = values_worth_keeping(loops[i].gradients, options.machine);
  }
  std::vector<std::uint64_t> fingerprint = fingerprint_of(tape, spec, options, loops, values);
  std::vector<LoopDivision> divisions = divisions_;
  if (fingerprint != fingerprint_) {
    divisions.assign(loops.size(), {});
    std::vector<std::size_t> flexible;
    for (std::size_t i = 0; i < loops.size(); ++i) {
      const bool limited = loops[i].loop().options().memory_budget != unlimited;
      if (const auto known =
              division_of_journal(loops[i].gradients, options.memory_budget, spec.threads)) {
        divisions[i] = *known;
      } else if (limited || options.memory_budget == unlimited) {
        divisions[i] = own_division(loops[i].gradients, spec.threads, values[i]);
        if (limited && leaves_threads_idle(loops, spec.threads)) {
          divisions[i] = divided_for_ahead(loops[i].gradients, divisions[i], spec.threads);
        }
      } else {
        flexible.push_back(i);
      }
      give_state_budget(tape, loops[i], divisions[i]);
    }
    if (!flexible.empty()) {
      Search(tape, spec, options, loops, divisions, values, std::move(flexible)).run();
    }
    for (std::size_t i = 0; i < loops.size(); ++i) {
      if (loops[i].loop().resume() != nullptr) divisions[i].run_budget = options.memory_budget;
    }
    divisions_ = divisions;
    fingerprint_ = std::move(fingerprint);
  }
  for (std::size_t i = 0; i < loops.size(); ++i) {
    give_state_budget(tape, loops[i], divisions[i]);
    const Loop& loop = loops[i].loop();
    if (!loop.has_condition()) {
      LoopDivision all{.snapshots = loop.snapshots()};
      if (values[i] != nullptr) {
        all.kept = loop.steps();
        all.values = values[i]->key;
      }
      withheld_ += held_bytes(loop, all) - held_bytes(loop, divisions[i]);
    }
    loops_.push_back({described(tape, loops[i], divisions[i], spec.threads), &loop});
  }
}

std::string LoopBudgets::summary() const {
  std::string text;
  for (const auto& [loop, address] : loops_) {
    text.append(text.empty() ? "" : "; ").append(loop.name).append(" holds ");
    text.append(std::to_string(loop.states)).append(loop.states == 1 ? " state" : " states");
    if (loop.kept_steps > 0) {
      text.append(" and values of ").append(std::to_string(loop.kept_steps));
      text.append(loop.kept_steps == 1 ? " step" : " steps");
    }
  }
  return text;
}

LoopBudgetScope::~LoopBudgetScope() { take_state_budgets(tape_); }

}  // namespace palimpsest
