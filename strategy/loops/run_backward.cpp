#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "checkpoint/chains/periodic.h"
#include "strategy/loops/loop_adjoints.h"
#include "strategy/loops/loop_run.h"
#include "strategy/loops/reverse_steps.h"

namespace palimpsest {
namespace {

/// Skips the first sweep of a schedule, whose stores the forward part has carried out.
template <class Schedule>
void skip_sweep(Schedule& schedule, HeldStates& held) {
  for (auto action = schedule.next(); action->kind != ChainAction::Kind::reverse;
       action = schedule.next()) {
    if (action->kind == ChainAction::Kind::store) held.recall(*action);
  }
}

}  // namespace

Bytes backward_workspace(const LoopGradient& gradient, Bytes room, const ValueType& steps,
                         int threads) {
  if (room > 0) return backward_memory(gradient, threads, share_in(steps), ahead_in(steps));
  const LoopGradient* const alone = &gradient;
  const LoopDivision own = own_division({&alone, 1}, threads);
  return snapshot_bytes(own.snapshots, gradient.loop()) +
         backward_memory(gradient, threads, own.share, 0);
}

void run_backward(const LoopGradient& gradient, const KernelCall& call) {
  const Loop& loop = gradient.loop();
  const Operand& snapshots = call.inputs[loop.operand_count()];
  const Operand* const count = loop.has_condition() ? &snapshots + 1 : nullptr;
  const auto steps =
      count == nullptr ? loop.steps() : static_cast<std::uint32_t>(*count->as<std::int64_t>());
  Cut cut(call.workspace);
  LoopArguments arguments(loop, call);
  LoopAdjoints adjoints(gradient, steps, call, cut);
  const Operand& spent = call.outputs.back();
  internal_check(snapshots.type == spent.type, "the two parts of a loop hold different states");
  std::span<std::byte> room = memory_of(spent);
  bool are_given = !room.empty() && steps > 0;
  const bool are_shared = are_given && spent.data != snapshots.data;
  Bytes share = share_in(steps_given(call.outputs));
  std::uint32_t ahead = ahead_in(steps_given(call.outputs));
  if (room.empty()) {
    const LoopGradient* const alone = &gradient;
    const LoopDivision own = own_division({&alone, 1}, call.threads);
    room = cut.take(snapshot_bytes(own.snapshots, loop));
    share = own.share;
    ahead = 0;
  }
  Addresses blocks[] = {cut.take(loop.state()), cut.take(loop.state())};
  std::vector<Addresses> blocks_ahead;
  for (std::uint32_t i = 0; i < 2 * ahead; ++i) blocks_ahead.push_back(cut.take(loop.state()));
  HeldStates held(loop, arguments.first(), room, cut.take(decoded_bytes(loop)));
  if (are_shared) {
    const Bytes end = held.layout().last + loop.state().bytes;
    std::memcpy(room.data(), snapshots.data, static_cast<std::size_t>(end));
  }
  const auto runs =
      make_steps(loop, &gradient, arguments,
                 cut.take(step_memory(loop, &gradient, call.threads, share, ahead > 0)),
                 call.threads, share, ahead > 0);

  RunScope* const scope = state_scope(call);
  auto handover = std::make_shared<LoopHandover>();
  if (are_given && held.layout().has_header) {
    // If the states were left by another run, or another backward part is using the file, they are
    // made again.
    const auto left = scope == nullptr ? nullptr : scope->find(held.handover_number());
    are_given = left != nullptr;
    if (are_given) handover = std::static_pointer_cast<LoopHandover>(left);
    if (are_given && handover->has_file()) {
      held.set_file(handover->take_file());
      are_given = held.has_file();
    }
  }
  StateHashes* const hashes = loop.options().check ? &handover->hashes : nullptr;
  Advance advance(loop, *runs, arguments.first(), blocks[0], blocks[1], hashes);
  const auto reverse = [&](std::uint32_t step, const Addresses& state) {
    const Addresses& given = adjoints.given(step);
    runs->backward(step, state, given, adjoints.results(step));
  };
  const auto reverse_rest = [&](auto& schedule) {
    if (ahead == 0) return reverse_steps(schedule, held, advance, reverse);
    reverse_steps_ahead(schedule, held, advance, loop.state(), blocks_ahead, reverse);
  };
  const auto reverse_known = [&](auto schedule) {
    if (are_given) {
      skip_sweep(schedule, held);
      advance.restore(steps == 1 ? arguments.first() : held.last(), steps - 1);
      reverse(steps - 1, advance.state());
    }
    reverse_rest(schedule);
  };
  const auto hold = [&](const ChainAction& store) {
    if (are_given) return held.recall(store);
    advance.to(store.step, nullptr);
    held.store(store, advance.state());
  };
  const bool disk = held.layout().disk;
  if (loop.has_condition() && disk) {
    PeriodicSnapshots chosen(held.slots(), loop.disk()->costs());
    while (chosen.steps() < steps) std::ranges::for_each(chosen.before_step(), hold);
    PeriodicReversal schedule(chosen);
    reverse_rest(schedule);
  } else if (loop.has_condition()) {
    OnlineSnapshots chosen(held.slots());
    while (chosen.steps() < steps) {
      if (const std::optional<ChainAction> store = chosen.before_step()) hold(*store);
    }
    OnlineReversal schedule(chosen);
    reverse_rest(schedule);
  } else if (disk) {
    reverse_known(loop.disk()->schedule(steps, held.slots()));
  } else {
    reverse_known(BinomialSchedule(steps, held.slots()));
  }
  if (are_shared && are_given) {
    handover->give_back(held.finish());
  } else if (are_given && scope != nullptr && held.layout().has_header) {
    scope->drop(held.handover_number());
  }
  if (loop.has_condition()) note(loop, call, steps, advance, steps, &held);
  if (scope != nullptr) runs->note_native(*scope);
  adjoints.finish(runs->untouched());
}

}  // namespace palimpsest
