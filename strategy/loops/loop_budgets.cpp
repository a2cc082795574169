#include "strategy/loops/loop_budgets.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <string>

#include "checkpoint/engine_planner.h"
#include "checkpoint/node_seconds.h"
#include "strategy/base/profile.h"
#include "strategy/compile/form_choice.h"
#include "strategy/compile/fusion/fingerprint.h"
#include "strategy/compile/fusion/needs.h"
#include "strategy/loops/division_search.h"
#include "strategy/loops/loop_ahead.h"
#include "strategy/loops/loop_run.h"

namespace palimpsest {
namespace {

/// Forward steps of a loop and of its derivative. An assumed length stands for one that is not
/// known.
std::uint64_t forward_steps_of(const HeldComponents& held, const LoopDivision& division) {
  const std::uint64_t steps = held.loop().likely_steps();
  if (held.are_none()) return steps;
  if (steps == 0) return 0;
  if (division.kept > 0) return 2 * steps - division.kept;
  // The last step runs once more, since everything that depends on the loop is differentiated
  // first.
  const LoopWork work = work_of(held, snapshot_bytes(division.snapshots, held));
  return static_cast<std::uint64_t>(work.forward_steps) + 1;
}

/// The work of a loop, compared with that of a division that holds everything.
Explanation::LoopSteps steps_of(const Tape& tape, const RecordedLoop& node,
                                const LoopDivision& division, const LoopDivision& whole,
                                double extra_seconds) {
  const Loop& loop = node.loop();
  const HeldComponents& held = node.parts().held();
  const std::uint64_t run = forward_steps_of(held, division);
  const std::uint64_t once = forward_steps_of(held, whole);
  std::string name = tape.describe(node.forward);
  if (loop.has_condition()) name += " of " + std::to_string(loop.likely_steps()) + " assumed steps";
  return {std::move(name), run, run - std::min(run, once), extra_seconds};
}

Report::Loop described(const Tape& tape, const RecordedLoop& node, const LoopDivision& division,
                       int threads, const Explanation::LoopSteps& steps) {
  const Loop& loop = node.loop();
  const HeldComponents& held = node.parts().held();
  const Bytes room = snapshot_bytes(division.snapshots, held);
  const bool keeps = division.kept > 0;
  const bool is_whole = division.share >= largest_share(node.parts(), threads);
  Report::Loop report{.name = tape.describe(node.forward),
                      .steps = loop.steps(),
                      .states = held.are_none() ? 0
                                : keeps         ? loop.steps()
                                                : LoopLayout(room, held).snapshots + 1,
                      .components = static_cast<std::uint32_t>(loop.state_count()),
                      .held_components = held.list(),
                      .kept_steps = division.kept,
                      .step_budget = is_whole ? 0 : division.share,
                      .ahead = division.ahead,
                      .recorded_again = loop.is_recorded_again()};
  if (loop.has_condition()) return report;  // the run counts its steps
  report.forward_steps = steps.run;
  report.recomputed_steps = steps.repeated;
  if (keeps || loop.steps() == 0) return report;
  const LoopWork work = work_of(held, room);
  report.disk_writes = work.writes;
  report.disk_reads = work.reads;
  return report;
}

std::vector<RecordedLoop> loops_of(const Tape& tape, const ProgramSpec& spec) {
  if (!holds_loops(tape)) return {};
  const Needs needs(tape, spec.targets, spec.held);
  return needed_loops(tape, needs.needed);
}

bool has_own_budget(const RecordedLoop& loop) {
  return loop.loop().options().memory_budget != unlimited;
}

/// Snapshots that the planner's settings permit a loop to hold.
std::uint32_t snapshots_permitted(const Loop& loop, const RunOptions& options) {
  const std::uint32_t steps = loop.likely_steps();
  const std::uint32_t states = engine_part(planner_of(options)).states_of_loop(steps);
  return states >= steps ? most_snapshots(loop) : std::max(states, 1u) - 1;
}

/// Likewise, in a run: a loop that it does not differentiate holds none.
std::uint32_t snapshots_permitted(const RecordedLoop& loop, const RunOptions& options) {
  return loop.is_differentiated() ? snapshots_permitted(loop.loop(), options) : 0;
}

/// True if the planner's settings say how much of a loop is recomputed.
bool is_ruled(const Loop& loop, const RunOptions& options) {
  return snapshots_permitted(loop, options) < most_snapshots(loop);
}

/// True if the planner limits memory to a share of what the whole program takes.
bool has_own_limit(const RunOptions& options) {
  return options.planner != nullptr && engine_part(options.planner).with_keep_all(0) != nullptr;
}

/// Whether there is anything to divide: states, or a budget.
bool are_limited(std::span<const RecordedLoop> loops, const RunOptions& options) {
  const bool has_budget = options.memory_budget != unlimited || has_own_limit(options);
  return std::ranges::any_of(loops, [&](const RecordedLoop& loop) {
    return loop.is_differentiated() || has_budget || has_own_budget(loop);
  });
}

/// Predicted seconds of a loop and of its derivatives, as they are divided on the tape.
double seconds_of_parts(const Tape& tape, const RecordedLoop& loop, const Machine& machine) {
  double seconds = seconds_of(NodeView(tape.nodes(), loop.forward), machine);
  for (const NodeId node : loop.backward) {
    seconds += seconds_of(NodeView(tape.nodes(), node), machine);
  }
  return seconds;
}

void give_all(Tape& tape, std::span<const RecordedLoop> loops,
              std::span<const LoopDivision> divisions) {
  for (std::size_t i = 0; i < loops.size(); ++i) give_state_budget(tape, loops[i], divisions[i]);
}

/// True if no budget makes a loop hold less than `whole`.
bool holds_all(const LoopDivision& division, const LoopDivision& whole) {
  return division.share == unlimited && division.ahead == 0 &&
         division.snapshots >= whole.snapshots && division.kept >= whole.kept;
}

/// Everything that the division of the budget between loops depends on.
std::vector<std::uint64_t> fingerprint_of(const Tape& tape, const ProgramSpec& spec,
                                          const RunOptions& options,
                                          std::span<const RecordedLoop> loops,
                                          std::span<const KeptValues* const> values) {
  std::vector<std::uint64_t> fingerprint;
  append_fingerprint(tape, spec.threads, fingerprint);
  const auto put = [&](auto word) { fingerprint.push_back(static_cast<std::uint64_t>(word)); };
  put(spec.threads);
  put(spec.targets.size());
  for (const ValueId target : spec.targets) put(target);
  for (const NodeId node : spec.held) put(node);
  put(spec.backward_begins);
  for (const RecordedLoop& loop : loops) {
    const LoopOptions& own = loop.loop().options();
    put(own.memory_budget);
    put(loop.parts().held().key());
    put(own.resume.empty() ? 0 : 1);
    for (const LoopPosition* const found : positions_in_journals(loop.parts())) {
      for (const Bytes bytes : {found->room, found->share, found->run_budget}) put(bytes);
    }
    put(int{own.spill_options.compress} << 4 | int{own.check} << 3 | int{!own.spill.empty()} << 2 |
        static_cast<int>(own.codec));
    const DiskCosts costs = loop.loop().given_costs().value_or(DiskCosts{-1, -1});
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
    // A loop that holds all its states runs each step once, and once more to be differentiated.
    const std::uint64_t once = 2 * std::uint64_t{report.steps};
    report.recomputed_steps = report.forward_steps - std::min(report.forward_steps, once);
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

LoopBudgets::Values LoopBudgets::values_worth_keeping(std::span<const RecordedLoop> loops,
                                                      const RunOptions& options) const {
  Values values(loops.size());
  if (keeps_ == Keeps::states) return values;
  for (std::size_t i = 0; i < loops.size() && loops[i].is_differentiated(); ++i) {
    values[i] = palimpsest::values_worth_keeping(loops[i].gradients, options.machine);
  }
  return values;
}

/// Those that the loops may keep within the budget of the options.
LoopBudgets::Values LoopBudgets::values_within(std::span<const RecordedLoop> loops,
                                               const RunOptions& options) const {
  Values values = values_worth_keeping(loops, options);
  const bool is_limited = options.memory_budget != unlimited || has_own_limit(options);
  for (std::size_t i = 0; i < loops.size(); ++i) {
    // The rest of a loop's own budget may be more than the run has.
    const bool has_too_much = is_limited && has_own_budget(loops[i]);
    if (has_too_much || is_ruled(loops[i].loop(), options)) values[i] = nullptr;
  }
  return values;
}

LoopBudgets::Decision LoopBudgets::divide(Tape& tape, const ProgramSpec& spec,
                                          const RunOptions& options,
                                          std::span<const RecordedLoop> loops,
                                          const Values& values) const {
  Decision made;
  made.extra_seconds.resize(loops.size());
  const Values all_values = values_worth_keeping(loops, options);
  for (std::size_t i = 0; i < loops.size(); ++i) {
    made.whole.push_back(whole_division(loops[i].parts(), all_values[i]));
  }
  RunOptions within = options;
  if (has_own_limit(options)) {
    give_all(tape, loops, made.whole);
    made.keep_all = keep_all_of(tape, spec, options);
    within.planner = planner_for(options, made.keep_all);
    within.memory_budget =
        engine_part(within.planner).limit(made.keep_all->peak, options.memory_budget);
  }
  made.divisions.resize(loops.size());
  std::vector<std::uint32_t> most(loops.size());
  std::vector<std::size_t> flexible;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    LoopDivision& division = made.divisions[i];
    most[i] = snapshots_permitted(loops[i], options);
    if (const auto known =
            division_of_journal(loops[i].parts(), within.memory_budget, spec.threads)) {
      division = *known;
    } else if (has_own_budget(loops[i]) || within.memory_budget == unlimited) {
      division = own_division(loops[i].parts(), spec.threads, values[i]);
      division.snapshots = std::min(division.snapshots, most[i]);
      if (has_own_budget(loops[i]) && loops[i].is_differentiated() &&
          leaves_threads_idle(loops, spec.threads)) {
        division = divided_for_ahead(loops[i].gradients, division, spec.threads);
      }
    } else {
      flexible.push_back(i);
    }
    give_state_budget(tape, loops[i], division);
  }
  if (!flexible.empty()) {
    DividedLoops divided{loops, values, most, made.divisions, std::move(flexible)};
    DivisionSearch(tape, spec, within, divided).run();
  }
  bool all = true;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    if (loops[i].loop().resume() != nullptr && loops[i].is_differentiated()) {
      made.divisions[i].run_budget = within.memory_budget;
    }
    all = all && holds_all(made.divisions[i], made.whole[i]);
  }
  if (!all) compare_with_whole(tape, spec, options, loops, made);
  return made;
}

/// Notes what the loops do in addition to a run without a budget.
void LoopBudgets::compare_with_whole(Tape& tape, const ProgramSpec& spec, const RunOptions& options,
                                     std::span<const RecordedLoop> loops, Decision& made) {
  const auto add_seconds = [&](double sign) {
    for (std::size_t i = 0; i < loops.size(); ++i) {
      made.extra_seconds[i] += sign * seconds_of_parts(tape, loops[i], spec.machine);
    }
  };
  give_all(tape, loops, made.divisions);
  add_seconds(1);
  give_all(tape, loops, made.whole);
  add_seconds(-1);
  if (!made.keep_all) made.keep_all = keep_all_of(tape, spec, options);
}

void LoopBudgets::decide(Tape& tape, const ProgramSpec& spec, const RunOptions& options) {
  loops_.clear();
  steps_.clear();
  is_decided_ = false;
  take_state_budgets(tape);
  const std::vector<RecordedLoop> loops = loops_of(tape, spec);
  if (!are_limited(loops, options)) return;
  // Loops of a tape that was recorded again do not know these yet.
  const Values values = values_within(loops, options);
  std::vector<std::uint64_t> fingerprint = fingerprint_of(tape, spec, options, loops, values);
  if (fingerprint != last_.fingerprint) {
    last_ = divide(tape, spec, options, loops, values);
    last_.fingerprint = std::move(fingerprint);
  }
  give_all(tape, loops, last_.divisions);
  is_decided_ = true;
  for (std::size_t i = 0; i < loops.size() && loops[i].is_differentiated(); ++i) {
    steps_.push_back(
        steps_of(tape, loops[i], last_.divisions[i], last_.whole[i], last_.extra_seconds[i]));
    loops_.push_back({described(tape, loops[i], last_.divisions[i], spec.threads, steps_.back()),
                      &loops[i].loop()});
  }
}

std::optional<KeepAll> LoopBudgets::keep_all() const {
  return is_decided_ ? last_.keep_all : std::nullopt;
}

Bytes LoopBudgets::peak_bound(Tape& tape, const ProgramSpec& spec, const RunOptions& options) {
  RunOptions tight = options;
  tight.memory_budget = 0;
  if (const auto refusal = reserve(tape, spec, tight)) return refusal->smallest_feasible();
  const std::vector<RecordedLoop> loops = loops_of(tape, spec);
  const Values values = values_worth_keeping(loops, options);
  std::vector<LoopDivision> divisions = last_.divisions;
  std::vector<std::uint32_t> most;
  std::vector<std::size_t> flexible;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    most.push_back(snapshots_permitted(loops[i], options));
    if (!has_own_budget(loops[i])) flexible.push_back(i);
  }
  DividedLoops divided{loops, values, most, divisions, std::move(flexible)};
  return DivisionSearch(tape, spec, tight, divided).peak_bound();
}

std::unique_ptr<LoopStateBudgets> LoopBudgets::for_copy_of(const Tape& tape) const {
  const auto has_journal = [](const LoopOfRun& each) { return each.loop->resume() != nullptr; };
  if (holds_operations_of_users(tape) || std::ranges::any_of(loops_, has_journal)) return nullptr;
  return std::make_unique<LoopBudgets>(keeps_);
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
