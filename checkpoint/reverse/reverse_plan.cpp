#include "checkpoint/reverse/reverse_plan.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "autodiff/error.h"
#include "checkpoint/chains/binomial.h"
#include "checkpoint/chains/periodic.h"
#include "checkpoint/plan.h"
#include "checkpoint/reverse/agreement.h"
#include "checkpoint/reverse/chain_schedule.h"
#include "checkpoint/reverse/error_samples.h"
#include "checkpoint/reverse/extent_file.h"
#include "checkpoint/reverse/kept_states.h"
#include "checkpoint/reverse/state_hashes.h"

namespace palimpsest {
namespace {

/// The runner itself, and tables that do not grow.
constexpr Bytes base_bytes = 8 << 10;
/// For each state that is kept: its entry, that of the schedule, and what the allocator adds.
constexpr Bytes entry_bytes = 256;
/// For what is known of states on disk, if their number is not known.
constexpr Bytes open_table_bytes = 64 << 10;
/// A two-tier schedule is planned in this many bytes per step, of at most so many steps.
constexpr Bytes planning_bytes = 48;
constexpr std::uint64_t most_planned = 1 << 18;
/// So many of these bytes are held while the schedule runs.
constexpr Bytes length_bytes = 4;

bool has_file(const ReverseOptions& options) {
  return !options.spill.empty() || !options.resume.empty();
}

/// Adds the bytes of everything but states and tapes to a plan.
void add_fixed_bytes(const ReverseOptions& options, ReverseChain& chain, const SnapshotCodec* codec,
                     ReversePlan& plan) {
  plan.fixed_bytes = base_bytes + chain.state().workspace() +
                     static_cast<Bytes>(plan.hashes * sizeof(std::uint64_t));
  if (has_file(options)) plan.fixed_bytes += ExtentFile::memory_bytes;
  const bool is_open = !options.steps || options.sizes_change;
  if (!options.spill.empty() && is_open) plan.fixed_bytes += open_table_bytes;
  if (codec == nullptr) return;
  plan.fixed_bytes += codec->memory_bytes();
  plan.buffer_bytes = KeptStates::memory_of(plan.largest_state) +
                      KeptStates::memory_of(codec->most(plan.largest_state));
  if (codec->is_exact() || options.sampled_segments == 0) return;
  plan.fixed_bytes += ErrorSamples::copies_bytes(plan.largest_state, plan.accumulated);
  plan.buffer_bytes +=
      ErrorSamples::states_bytes(options.sampled_segments, plan.largest_state, has_file(options));
}

/// Forward steps with `snapshots` slots and segments of `segment` steps.
double steps_with(std::uint64_t steps, std::uint64_t segment, std::uint64_t snapshots) {
  const std::uint64_t units = (steps + segment - 1) / segment + 1;
  return static_cast<double>(segment) *
         static_cast<double>(binomial_forward_steps(static_cast<std::uint32_t>(units),
                                                    static_cast<std::uint32_t>(snapshots)));
}

/// The number of steps per segment that makes the fewest steps run again.
std::uint64_t best_segment(std::optional<std::uint64_t> steps, Bytes room, Bytes slot, Bytes tape) {
  const auto longest = [&](Bytes states) {
    return static_cast<std::uint64_t>(std::max<Bytes>((room - states) / tape, 1));
  };
  // Nothing is known about the length: half for the tape.
  if (!steps) return longest(std::max(room / 2, slot));
  std::uint64_t best = 1;
  double least = std::numeric_limits<double>::infinity();
  for (Bytes snapshots = 1; snapshots * slot + tape <= room;
       snapshots += std::max<Bytes>(snapshots / 32, 1)) {
    const std::uint64_t segment =
        std::clamp<std::uint64_t>(longest(snapshots * slot), 1, std::max<std::uint64_t>(*steps, 1));
    const double cost = steps_with(*steps, segment, static_cast<std::uint64_t>(snapshots));
    if (cost < least) {
      least = cost;
      best = segment;
    }
    if (snapshots > static_cast<Bytes>(*steps)) break;
  }
  return best;
}

std::uint32_t snapshots_in(Bytes room, Bytes slot, std::uint64_t units) {
  const auto fitting = static_cast<std::uint64_t>(room / slot);
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(fitting, 1, std::max<std::uint64_t>(units, 1)));
}

Bytes planned_steps(const ReversePlan& plan) {
  return static_cast<Bytes>(std::min(*plan.steps + 1, most_planned));
}

/// Bytes of memory for what is known of a state on disk.
Bytes disk_entry_bytes(const ReversePlan& plan) {
  constexpr Bytes entry_of_piece = 8;
  return plan.entry_bytes + ExtentFile::extent_bytes + entry_of_piece;
}

/// Bytes of memory for the lengths of pieces of a schedule with a disk.
Bytes lengths_bytes(const ReversePlan& plan) { return planned_steps(plan) * length_bytes; }

/// The least bytes of memory for a table. With few states on disk, many steps are run again.
Bytes least_table(const ReversePlan& plan) {
  constexpr std::uint64_t states = 64;
  return static_cast<Bytes>(std::min(*plan.steps, states)) * disk_entry_bytes(plan) +
         lengths_bytes(plan);
}

/// Bytes of memory for what is known of states on disk, and for their schedule.
Bytes disk_table(const ReversePlan& plan, const ChainSchedule& schedule) {
  return static_cast<Bytes>(schedule.writes()) * disk_entry_bytes(plan) + lengths_bytes(plan);
}

/// Divides the room between states in memory and the table of those on disk, which is larger the
/// fewer states are in memory. Returns false if the table and one state do not fit.
bool share_with_table(ReversePlan& plan, Bytes slot, std::uint64_t units) {
  plan.snapshots = snapshots_in(plan.room, slot, units);
  // The schedule of a long chain that writes far too many states is not made.
  const auto period = best_period(plan.snapshots, *plan.costs);
  const std::uint64_t before_last = units - std::min<std::uint64_t>(units, most_planned);
  if (static_cast<Bytes>(before_last / period / 2) * disk_entry_bytes(plan) > plan.room) {
    return false;
  }
  auto schedule = make_chain_schedule(plan.units(), plan.snapshots, plan.costs);
  Bytes table = disk_table(plan, *schedule);
  for (Bytes before = -1; table > before;) {
    if (table + slot > plan.room) return false;
    plan.snapshots = snapshots_in(plan.room - table, slot, units);
    schedule = make_chain_schedule(plan.units(), plan.snapshots, plan.costs);
    before = std::exchange(table, std::max(table, disk_table(plan, *schedule)));
  }
  plan.fixed_bytes += table;
  plan.room -= table;
  return true;
}

/// Plans the disk tier of a chain of known length. Where memory is too small for the table of the
/// cheapest schedule, a higher cost of writing makes shorter tables.
void plan_disk_tier(ReversePlan& plan, Bytes slot, std::uint64_t units) {
  constexpr double factor = 4;
  constexpr double most_cost = 1e12;
  for (double& write = plan.costs->write; write <= most_cost;
       write = std::max(factor * write, 1.0)) {
    if (share_with_table(plan, slot, units)) return;
  }
  plan.costs = {};
  plan.snapshots = snapshots_in(plan.room, slot, units);
}

[[noreturn]] void refuse(Bytes budget, Bytes smallest) {
  throw BudgetError("[reverse] the budget of " + format_bytes(budget) +
                        " is too small; the smallest feasible budget is " + format_bytes(smallest) +
                        " (" + std::to_string(smallest) + " bytes)",
                    budget, smallest);
}

}  // namespace

Bytes ReversePlan::bytes(Bytes tape_bytes_per_step) const {
  const Bytes tape = static_cast<Bytes>(segment) * tape_bytes_per_step;
  return fixed_bytes + buffer_bytes + tape + room;
}

ReversePlan plan_reversal(const ReverseOptions& options, ReverseChain& chain,
                          const SnapshotCodec* codec, std::vector<Bytes> accumulated,
                          const std::function<DiskCosts()>& costs, const Where& where) {
  ReversePlan plan;
  plan.steps = options.steps;
  plan.accumulated = std::move(accumulated);
  plan.largest_state = std::max(chain.state().bytes(), options.largest_state);
  constexpr std::uint64_t most_units = std::numeric_limits<std::uint32_t>::max() - 2;
  if (plan.steps.value_or(0) > most_units) {
    throw ArgumentError("reverse",
                        std::to_string(*plan.steps) + " steps are too many; reverse at most " +
                            std::to_string(most_units) + " at once, or join steps",
                        where);
  }
  const bool on_disk = !options.spill.empty();
  // States in memory are compressed if they need not be read from the disk, or if that takes a
  // known part of their bytes.
  plan.encodes_memory = codec != nullptr && (codec->is_fixed() || !on_disk);
  plan.by_bytes = options.sizes_change || (plan.encodes_memory && !codec->is_fixed());
  if (options.check) {
    plan.hashes = StateHashes::most_entries;
    if (plan.steps) plan.hashes = std::min<std::size_t>(plan.hashes, *plan.steps + 1);
  }
  add_fixed_bytes(options, chain, codec, plan);
  plan.slot_bytes = plan.encodes_memory && codec->is_fixed() ? codec->most(plan.largest_state)
                                                             : plan.largest_state;
  plan.entry_bytes = entry_bytes + (options.resume.empty() ? 0 : 4 * ExtentFile::extent_bytes);
  // All processes of a group have the same plan.
  Bytes agreed[] = {plan.fixed_bytes, plan.buffer_bytes, plan.slot_bytes};
  take_largest(options.group.get(), agreed);
  plan.fixed_bytes = agreed[0];
  plan.buffer_bytes = agreed[1];
  plan.slot_bytes = agreed[2];
  const Bytes slot = KeptStates::memory_of(plan.slot_bytes) + plan.entry_bytes;
  const Bytes tape = chain.has_segments() ? options.tape_bytes_per_step : 0;
  const Bytes fixed = plan.fixed_bytes + plan.buffer_bytes;
  const bool has_tiers = on_disk && plan.steps && *plan.steps > 1 && !plan.by_bytes;
  const Bytes planning = has_tiers ? planning_bytes * planned_steps(plan) : 0;
  const Bytes table = has_tiers ? least_table(plan) : 0;
  const Bytes smallest = fixed + std::max(tape + slot + table, planning);
  if (options.memory_budget < smallest) refuse(options.memory_budget, smallest);

  const Bytes available = options.memory_budget - fixed;
  if (tape > 0) plan.segment = best_segment(plan.steps, available - table, slot, tape);
  plan.room = available - static_cast<Bytes>(plan.segment) * tape;
  const std::uint64_t units = plan.units().value_or(most_units);
  plan.snapshots = snapshots_in(plan.room, slot, units);
  const bool holds_all = plan.steps && !plan.by_bytes && plan.snapshots >= units;
  if (on_disk && !holds_all) {
    const auto length = static_cast<double>(plan.segment);
    plan.step_costs = costs();
    plan.costs = DiskCosts{plan.step_costs->write / length, plan.step_costs->read / length};
    if (has_tiers) plan_disk_tier(plan, slot, units);
  }
  if (plan.by_bytes) {
    plan.slot_bytes = 0;
  } else {
    plan.room = plan.snapshots * slot;
  }
  return plan;
}

JournalPosition position_before(const ReversePlan& plan) {
  JournalPosition position;
  if (plan.steps) position.length = position.left = *plan.steps;
  position.snapshots = plan.snapshots;
  position.segment = plan.segment;
  position.slot_bytes = plan.slot_bytes;
  if (plan.step_costs) {
    position.write_cost = plan.step_costs->write;
    position.read_cost = plan.step_costs->read;
  }
  if (plan.costs) position.planned_write_cost = plan.costs->write;
  return position;
}

}  // namespace palimpsest
