#include <optional>
#include <string>

#include "checkpoint/chains/periodic.h"
#include "strategy/loops/advance.h"
#include "strategy/loops/forward_records.h"
#include "strategy/loops/loop_run.h"
#include "strategy/loops/state_rows.h"

namespace palimpsest {
namespace {

/// Carries out `schedule` up to its first reversal, which is that of the last step. The state for
/// it is then in `held.last()`.
template <class Schedule>
void sweep(Schedule schedule, HeldStates& held, Advance& advance, const Parts& outputs,
           ForwardRecords* records) {
  if (records != nullptr) {
    for (std::uint64_t done = records->actions(); done > 0; --done) schedule.next();
  }
  for (std::optional<ChainAction> now = schedule.next(); now->kind != ChainAction::Kind::reverse;) {
    if (store_row(schedule, *now, held, advance, &outputs)) {
      now = schedule.next();
      continue;
    }
    const std::optional<ChainAction> next = schedule.next();
    advance.carry_out(*now, *next, held, &outputs, &held.last());
    if (records != nullptr) records->action_done();
    now = next;
  }
  // A state that was read from a journal is elsewhere.
  held.components().block().copy(advance.state(), held.last());
}

/// Runs steps while the condition holds. `before_step` holds states.
template <class BeforeStep>
std::uint32_t run_while(const Loop& loop, LoopSteps& steps, Advance& advance,
                        BeforeStep before_step) {
  std::uint32_t step = advance.step();
  for (; steps.goes_on(step, advance.state()); ++step) {
    if (step >= loop.options().max_steps) {
      throw ArgumentError(
          "while_loop",
          "the loop needs more than " + std::to_string(step) +
              " steps; make the condition false earlier, or raise LoopOptions::max_steps",
          loop.body().where);
    }
    before_step();
    advance.to(step + 1, nullptr);
  }
  return step;
}

std::uint32_t run_while(const Loop& loop, LoopSteps& steps, HeldStates* held, Advance& advance) {
  if (held == nullptr) return run_while(loop, steps, advance, [] {});
  // The choices before the current state, if a journal gave it, are made again without effect.
  if (held->layout().disk) {
    PeriodicSnapshots snapshots(held->slots(), held->components().disk()->costs());
    while (snapshots.steps() < advance.step()) snapshots.before_step();
    return run_while(loop, steps, advance, [&] {
      for (const ChainAction& store : snapshots.before_step()) held->store(store, advance.state());
    });
  }
  OnlineSnapshots snapshots(held->slots());
  while (snapshots.steps() < advance.step()) snapshots.before_step();
  return run_while(loop, steps, advance, [&] {
    if (const auto store = snapshots.before_step()) held->store(*store, advance.state());
  });
}

/// Runs the steps. Returns their number.
std::uint32_t run(const Loop& loop, LoopSteps& steps, HeldStates* held, Advance& advance,
                  const Parts& outputs, const Addresses& last, ForwardRecords* records) {
  if (loop.has_condition()) return run_while(loop, steps, held, advance);
  if (held != nullptr && loop.steps() > 0) {
    if (held->layout().disk) {
      const LoopDisk& disk = *held->components().disk();
      sweep(disk.schedule(loop.steps(), held->slots()), *held, advance, outputs, records);
    } else {
      sweep(BinomialSchedule(loop.steps(), held->slots()), *held, advance, outputs, records);
    }
  }
  advance.to(loop.steps(), &last, &outputs);
  return loop.steps();
}

}  // namespace

void note(const Loop& loop, const KernelCall& call, std::uint64_t steps, const Advance& advance,
          std::uint64_t reversed, const HeldStates* held) {
  RunScope* const scope = state_scope(call);
  if (scope == nullptr) return;
  LoopCounts& counts = scope->note<LoopCounts>(&loop);
  counts.are_counted = true;
  counts.steps = steps;
  counts.forward_steps += advance.steps_run() + reversed;
  if (held == nullptr) return;
  counts.disk_writes += held->disk_writes();
  counts.disk_reads += held->disk_reads();
}

void run_forward(const Loop& loop, const KernelCall& call) {
  const LoopDivision division = division_given(call.outputs, call.outputs.back(), loop);
  const HeldComponents& components = held_given(call.outputs, loop);
  if (division.kept > 0) return run_forward_keeping(components, call, division);
  Cut cut(call.workspace);
  LoopArguments arguments(loop, call);
  Addresses blocks[] = {cut.take(loop.state()), cut.take(loop.state())};
  const Bytes share = division.share;
  const Bytes memory = step_memory(components, nullptr, call.threads, share, false);
  const auto steps =
      make_steps(components, nullptr, arguments, cut.take(memory), call.threads, share, false);
  const Parts outputs(call.outputs.subspan(loop.state_count(), loop.output_count()), loop.steps());
  const Addresses last = addresses_of(call.outputs.first(loop.state_count()));
  const std::span<std::byte> room = memory_of(call.outputs.back());
  const auto handover = std::make_shared<LoopHandover>();
  std::optional<HeldStates> held;
  if (!room.empty()) held.emplace(components, arguments.first(), room, std::span<std::byte>());
  StateHashes* const hashes = held && loop.options().check ? &handover->hashes : nullptr;
  if (hashes != nullptr) hashes->reserve(loop.steps());
  Advance advance(components, Advance::Makes::states, *steps, arguments.first(), blocks[0],
                  blocks[1], hashes);
  std::optional<ForwardRecords> records;
  if (loop.resume() != nullptr) {
    records.emplace(ForwardRecords::Part{loop,
                                         call,
                                         *steps,
                                         advance,
                                         held ? &*held : nullptr,
                                         hashes != nullptr ? &hashes->hashes() : nullptr,
                                         arguments.first(),
                                         last,
                                         outputs,
                                         {blocks[0], blocks[1]}});
  }
  if (records && !records->is_open()) records.reset();
  std::uint32_t count = loop.steps();
  if (records && records->begin()) {
    if (loop.has_condition()) count = static_cast<std::uint32_t>(records->count());
  } else {
    const bool holds = held && !(records && records->repeats());
    try {
      count = run(loop, *steps, holds ? &*held : nullptr, advance, outputs, last,
                  records ? &*records : nullptr);
    } catch (const StoppedError&) {
      if (records) records->stop();
      throw;
    }
    loop.state().copy(advance.state(), last);
    if (records) records->end(count);
  }
  RunScope* const scope = state_scope(call);
  if (loop.has_condition()) {
    note(loop, call, count, advance, 0, held ? &*held : nullptr);
    *call.outputs[loop.state_count()].as<std::int64_t>() = count;
  }
  if (call.scope != nullptr) steps->note_native(*call.scope);
  if (records && scope != nullptr) records->note(scope->note<LoopCounts>(&loop));
  if (!held || !held->layout().has_header) return;
  if (records) {
    records->hand_over(*handover);
  } else {
    handover->leave_file(held->finish());
  }
  held->handover_number() = scope != nullptr ? scope->keep(handover) : 0;
}

}  // namespace palimpsest
