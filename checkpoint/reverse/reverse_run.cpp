#include "checkpoint/reverse/reverse_run.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "autodiff/error.h"
#include "checkpoint/reverse/agreement.h"

namespace palimpsest {
namespace {

/// The processes of a group look at the clock together about so often.
constexpr double look_seconds = 0.001;
constexpr std::uint64_t most_pauses = 1 << 20;
constexpr std::chrono::duration<double> show_every(0.05);

}  // namespace

ReverseRun::ReverseRun(const ReverseOptions& options, const Where& where, ReverseChain& chain,
                       const ReversePlan& plan, SnapshotCodec* codec, Journal* journal,
                       ReverseReport& report)
    : options_(options),
      where_(where),
      chain_(chain),
      plan_(plan),
      journal_(journal),
      report_(report),
      always_looks_(journal != nullptr && options.record_every.count() <= 0) {
  if (journal != nullptr) {
    file_ = &journal->file();
  } else if (!options.spill.empty()) {
    spill_ = std::make_unique<LockedFile>(options.spill);
    spill_file_ =
        std::make_unique<ExtentFile>(spill_->descriptor(), spill_->path(), LockedFile::first_free);
    file_ = spill_file_.get();
  }
  kept_.emplace(chain.state(),
                KeptStates::Settings{.codec = codec,
                                     .encodes_memory = plan.encodes_memory,
                                     .largest_state = plan.largest_state,
                                     .slot_bytes = plan.slot_bytes,
                                     .slots = plan.snapshots,
                                     .file = file_,
                                     .where = where},
                meter_);
  if (!plan.by_bytes) {
    kept_->tier(KeptStates::Tier::memory).reserve(plan.snapshots);
    schedule_ = make_chain_schedule(plan.units(), plan.snapshots, plan.costs);
  }
  if (plan.hashes > 0) hashes_.emplace(plan.hashes);
  const bool is_lossy = codec != nullptr && !codec->is_exact();
  if (is_lossy && options.sampled_segments > 0) {
    samples_.emplace(options.sampled_segments, plan.steps, plan.segment, chain, file_, meter_);
  }
  report_.states_in_memory = plan.by_bytes ? 0 : plan.snapshots;
  if (!plan.by_bytes && plan.steps) expected_ = calls_expected();
}

std::uint64_t ReverseRun::calls_expected() const {
  const std::uint64_t length = plan_.steps.value_or(position_.length);
  const std::uint64_t units = (length + plan_.segment - 1) / plan_.segment;
  // A schedule counts a step for each tape, and of a known length also the sweep and the seed.
  const std::uint64_t once = plan_.steps ? 2 * units + 1 : units;
  return 2 * length + (schedule_->forward_units() - once) * plan_.segment;
}

std::uint64_t ReverseRun::step_of(std::uint64_t unit) const {
  const std::uint64_t step = unit * plan_.segment;
  return position_.length > 0 ? std::min(step, position_.length) : step;
}

void ReverseRun::begin() {
  position_ = position_before(plan_);
  if (hashes_) hashes_->check(0, chain_.state(), where_);
  if (samples_) samples_->visit(0);
  // A run that fails early leaves partial sums, and the next one must begin with these.
  const bool has_sums = !holds_for_all(options_.group.get(), plan_.accumulated.empty());
  if (journal_ != nullptr && has_sums) clock_.time_record([&] { add_record(); });
}

bool ReverseRun::run() {
  if (position_.phase == Phase::finished) return finish();
  try {
    if (plan_.by_bytes) {
      if (is_sweep()) sweep_by_bytes();
      reverse_by_bytes();
    } else {
      if (is_sweep() && !plan_.steps) sweep();
      reverse_by_schedule();
    }
  } catch (const Stopped&) {
    return false;
  }
  position_.phase = Phase::finished;
  position_.current = none;
  for (const auto tier : {KeptStates::Tier::memory, KeptStates::Tier::disk}) {
    for (KeptState& kept : kept_->tier(tier)) kept_->drop(kept);
    kept_->tier(tier).clear();
  }
  if (journal_ != nullptr) {
    // The record before the last one is forgotten now. Others may not have the last one yet.
    holds_for_all(options_.group.get(), true);
    add_record();
    // Other processes may have to continue from the record before.
    holds_for_all(options_.group.get(), true);
    journal_->finish();
  }
  return finish();
}

bool ReverseRun::finish() {
  report_.finished = true;
  if (samples_) report_.errors = samples_->errors();
  if (options_.progress) report_progress();
  return true;
}

bool ReverseRun::is_last() {
  bool last = plan_.steps ? position_.current == *plan_.steps : chain_.done(position_.current);
  if (!plan_.steps && options_.group != nullptr) {
    std::int64_t votes[] = {last ? 1 : 0, last ? -1 : 0};
    options_.group->least(votes);
    if (votes[0] != -votes[1]) {
      throw ArgumentError("reverse",
                          "done returns true in some processes and false in others before step " +
                              std::to_string(position_.current) +
                              "; let all of them decide from the same numbers",
                          where_);
    }
    last = votes[0] == 1;
  }
  return last;
}

void ReverseRun::sweep() {
  while (!is_last()) {
    const std::uint64_t step = position_.current;
    if (step % plan_.segment == 0 && position_.actions == step / plan_.segment) {
      for (const ChainAction& store : schedule_->before_step()) carry_out(store);
      ++position_.actions;
    }
    advance_to(step + 1);
  }
  position_.length = position_.left = position_.current;
  schedule_->end_sweep();
  expected_ = calls_expected();
  position_.actions = 0;
  seed();
  pause();
}

void ReverseRun::seed() {
  chain_.seed();
  if (journal_ != nullptr) chain_.require_loadable_adjoint();
  has_adjoint_ = true;
  position_.phase = Phase::reversal;
  position_.current = none;
  position_.left = position_.length;
  // The steps of the reversal may take longer than those before.
  until_clock_ = pauses_ = 1;
  if (samples_) {
    std::uint64_t kept = 0;
    for (const auto tier : {KeptStates::Tier::memory, KeptStates::Tier::disk}) {
      kept += kept_->tier(tier).size();
    }
    samples_->end_sweep(position_.length, kept);
  }
}

void ReverseRun::reverse_by_schedule() {
  while (const std::optional<ChainAction> action = schedule_->next()) {
    carry_out(*action);
    ++position_.actions;
    if (!is_whole()) pause();
  }
}

void ReverseRun::carry_out(const ChainAction& action) {
  using Kind = ChainAction::Kind;
  switch (action.kind) {
    case Kind::store:
      kept_->store(action.tier, action.slot, step_of(action.step));
      break;
    case Kind::restore:
      restore(kept_->tier(action.tier)[action.slot], action.tier);
      break;
    case Kind::advance:
      advance_to(step_of(action.step));
      break;
    case Kind::reverse:
      if (plan_.steps && action.step == *plan_.units()) {
        seed();
      } else {
        reverse_unit(step_of(action.step));
      }
  }
}

void ReverseRun::advance_to(std::uint64_t state) {
  while (position_.current < state) {
    chain_.advance(position_.current);
    ++position_.current;
    ++position_.advanced;
    ++report_.steps_advanced;
    if (position_.current > position_.furthest) {
      position_.furthest = position_.current;
      if (samples_ && position_.current % plan_.segment == 0) samples_->visit(position_.current);
    } else {
      ++report_.steps_advanced_again;
    }
    if (hashes_) hashes_->check(position_.current, chain_.state(), where_);
    pause();
  }
}

void ReverseRun::reverse_unit(std::uint64_t first) {
  chain_.reverse(first, position_.left);
  report_.steps_reversed += position_.left - first;
  position_.left = first;
  position_.current = none;
  if (samples_) samples_->reversed_to(first);
}

void ReverseRun::restore(KeptState& kept, KeptStates::Tier tier) {
  bool is_intact = kept_->load(kept);
  const bool may_differ = tier == KeptStates::Tier::disk || !is_memory_whole_;
  if (!(may_differ ? holds_for_all(options_.group.get(), is_intact) : is_intact)) {
    make_again(kept, !is_intact);
    if (!is_intact) kept_->replace(kept, tier);
  }
  position_.current = kept.step;
}

void ReverseRun::make_again(const KeptState& damaged, bool is_damaged_here) {
  const std::string what = "[reverse] " + file_->path() + ": the state before step " +
                           std::to_string(damaged.step) + " is damaged";
  std::vector<const KeptState*> before;
  for (const auto other : {KeptStates::Tier::memory, KeptStates::Tier::disk}) {
    for (const KeptState& kept : kept_->tier(other)) {
      if (kept.is_kept && &kept != &damaged && kept.step <= damaged.step) before.push_back(&kept);
    }
  }
  std::ranges::stable_sort(before, std::greater(), &KeptState::step);
  const auto from = std::ranges::find_if(before, [&](const KeptState* kept) {
    const bool is_intact = kept->memory != nullptr || file_->is_intact(kept->extent);
    return holds_for_all(options_.group.get(), is_intact);
  });
  if (from == before.end() || !kept_->is_exact()) {
    throw FileError(what +
                    ", and cannot be made again; check the disk, and run again without "
                    "the journal");
  }
  kept_->load(**from);
  for (std::uint64_t step = (*from)->step; step < damaged.step; ++step) {
    chain_.advance(step);
    ++report_.steps_advanced;
    ++report_.steps_advanced_again;
  }
  if (!is_damaged_here) return;
  if (!kept_->matches(damaged)) {
    throw ArgumentError("reverse",
                        "the steps " + std::to_string((*from)->step) + " to " +
                            std::to_string(damaged.step) +
                            " made another state than when they ran first; make steps depend on "
                            "nothing but the state and the number of the step",
                        where_);
  }
  ++report_.states_repaired;
}

void ReverseRun::look_at_clock() {
  const double seconds = clock_.look();
  bool stops = options_.stop.stop_requested() ||
               (options_.stop_after && clock_.seconds() >= options_.stop_after->count());
  bool records = journal_ != nullptr && (stops || clock_.is_time_to_record(options_.record_every));
  if (options_.group != nullptr) {
    // Looks of a group are rare where pauses are short.
    if (seconds < look_seconds / 2 && pauses_ < most_pauses) {
      pauses_ *= 2;
    } else if (seconds > look_seconds) {
      pauses_ = std::max<std::uint64_t>(pauses_ / 2, 1);
    }
    if (always_looks_) pauses_ = 1;
    std::int64_t decisions[] = {static_cast<std::int64_t>(pauses_), stops ? 0 : 1, records ? 0 : 1};
    options_.group->least(decisions);
    pauses_ = static_cast<std::uint64_t>(decisions[0]);
    stops = decisions[1] == 0;
    records = decisions[2] == 0;
    until_clock_ = pauses_;
  }
  if (options_.progress && clock_.is_time_to_show(show_every)) report_progress();
  if (stops && journal_ == nullptr) {
    throw StoppedError("[reverse] the run was stopped");
  }
  if (records) clock_.time_record([&] { add_record(); });
  if (stops) throw Stopped();
}

void ReverseRun::report_progress() {
  ReverseProgress progress{.steps = position_.length,
                           .steps_advanced = report_.steps_advanced,
                           .steps_reversed = position_.length - position_.left};
  const auto part_of = [](std::uint64_t done, std::uint64_t all) {
    return std::min(1.0, static_cast<double>(done) / static_cast<double>(all));
  };
  if (position_.phase == Phase::finished) {
    progress.part = 1;
  } else if (expected_ > 0) {
    progress.part = part_of(position_.advanced + progress.steps_reversed, expected_);
  } else if (position_.length > 0) {
    progress.part = part_of(position_.furthest + progress.steps_reversed, 2 * position_.length);
  }
  options_.progress(progress);
}

void ReverseRun::finish_report() {
  report_.steps = position_.length;
  if (samples_) report_.steps_advanced += samples_->steps_advanced();
  report_.budget = options_.memory_budget;
  report_.peak_bytes = meter_.peak() + plan_.fixed_bytes +
                       static_cast<Bytes>(plan_.segment) * options_.tape_bytes_per_step;
  report_.disk_writes = kept_->disk_writes();
  report_.disk_reads = kept_->disk_reads();
  if (file_ != nullptr) {
    report_.bytes_written = file_->bytes_written();
    report_.bytes_read = file_->bytes_read();
  }
  report_.seconds = clock_.seconds();
}

}  // namespace palimpsest
