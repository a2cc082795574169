#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include "checkpoint/chains/periodic.h"
#include "strategy/loops/backward_records.h"
#include "strategy/loops/loop_adjoints.h"
#include "strategy/loops/loop_run.h"
#include "strategy/loops/reverse_steps.h"

namespace palimpsest {
namespace {

/// Skips the first sweep of a schedule, whose stores the forward part has carried out. Returns the
/// number of actions before the first reversal, which is the last action that it has taken.
template <class Schedule>
std::uint64_t skip_sweep(Schedule& schedule, HeldStates& held) {
  std::uint64_t skipped = 0;
  for (auto action = schedule.next(); action->kind != ChainAction::Kind::reverse; ++skipped) {
    if (action->kind == ChainAction::Kind::store) held.recall(*action);
    skipped += 2 * std::uint64_t{take_stores(schedule, *action, held).count};
    action = schedule.next();
  }
  return skipped;
}

/// Reverses the steps of a loop.
struct Reversal {
  const Loop& loop;
  std::uint32_t steps;
  LoopArguments& arguments;
  LoopSteps& runs;
  HeldStates& held;
  Advance& advance;
  LoopAdjoints& adjoints;
  BackwardRecords* records;  ///< null without a journal
  std::span<const Addresses> blocks_ahead;
  bool are_given;     ///< the forward part has left its states
  bool reads_states;  ///< other derivatives of the loop may read some

  void run() {
    if (!reads_states) return reverse_without_states();
    const LoopDisk* const disk = held.layout().disk ? held.components().disk() : nullptr;
    if (loop.has_condition() && disk != nullptr) {
      PeriodicSnapshots chosen(held.slots(), disk->costs());
      choose(chosen, [&] {
        for (const ChainAction& store : chosen.before_step()) hold(store);
      });
      PeriodicReversal schedule(chosen);
      reverse_chosen(schedule);
    } else if (loop.has_condition()) {
      OnlineSnapshots chosen(held.slots());
      choose(chosen, [&] {
        if (const std::optional<ChainAction> store = chosen.before_step()) hold(*store);
      });
      OnlineReversal schedule(chosen);
      reverse_chosen(schedule);
    } else if (disk != nullptr) {
      reverse_known(disk->schedule(steps, held.slots()));
    } else {
      reverse_known(BinomialSchedule(steps, held.slots()));
    }
  }

 private:
  bool is_resumed() const { return records != nullptr && records->is_resumed(); }

  /// Reverses steps that read no state.
  void reverse_without_states() {
    const auto addresses = [&](std::uint32_t step) -> LoopSteps::Backward {
      return {arguments.first(), adjoints.given(step), adjoints.results(step)};
    };
    adjoints.reverse_rows(0, [&](std::uint32_t step, std::uint32_t count) {
      runs.backward_row(step, count, std::ref(addresses));
    });
  }

  void reverse(std::uint32_t step, const Addresses& state) {
    const Addresses& given = adjoints.given(step);
    runs.backward(step, state, given, adjoints.results(step));
    adjoints.reversed();
  }

  void reverse_row(const ChainRow& row) {
    const auto addresses = [&](std::uint32_t step) -> LoopSteps::Backward {
      const std::uint32_t slot = row.slot - (row.step - step);
      const Addresses& state = held.restore({ChainAction::Kind::restore, step, slot});
      return {state, adjoints.given(step), adjoints.results(step)};
    };
    runs.backward_row(row.step, row.count, std::ref(addresses));
    adjoints.reversed(row.count);
  }

  template <class Schedule>
  void reverse_rest(Schedule& schedule) {
    const auto reverse = [&](std::uint32_t step, const Addresses& state) {
      this->reverse(step, state);
    };
    const auto reverse_row = [&](const ChainRow& row) { this->reverse_row(row); };
    const auto done = [&](const ChainAction& action) {
      if (records != nullptr) records->action_done(action);
    };
    if (blocks_ahead.empty()) {
      return reverse_steps(schedule, held, advance, reverse, reverse_row, done);
    }
    reverse_steps_ahead(schedule, held, advance, held.components().block(), blocks_ahead, reverse);
  }

  /// Takes the actions that an earlier process has carried out.
  template <class Schedule>
  void skip_done(Schedule& schedule) {
    for (std::uint64_t done = records->actions(); done > 0; --done) schedule.next();
  }

  template <class Schedule>
  void reverse_known(Schedule schedule) {
    if (is_resumed()) {
      skip_done(schedule);
    } else if (are_given) {
      const std::uint64_t skipped = skip_sweep(schedule, held);
      advance.restore(steps == 1 ? arguments.first() : held.last(), steps - 1);
      if (records != nullptr) records->skip(skipped);
      reverse(steps - 1, advance.state());
      if (records != nullptr) {
        records->action_done({ChainAction::Kind::reverse, steps - 1});
      }
    }
    reverse_rest(schedule);
  }

  /// Holds a state, or recalls that the forward part has stored it.
  void hold(const ChainAction& store) {
    if (are_given) return held.recall(store);
    advance.to(store.step, nullptr);
    held.store(store, advance.state());
  }

  /// Chooses the states that a loop of unknown length holds.
  template <class Chosen, class Choose>
  void choose(Chosen& chosen, Choose choose_next) {
    const bool is_in_sweep = is_resumed() && records->is_in_sweep();
    std::uint64_t done = is_in_sweep ? records->actions() : is_resumed() ? steps : 0;
    for (; chosen.steps() < steps && done > 0; --done) chosen.before_step();
    while (chosen.steps() < steps) {
      choose_next();
      if (records != nullptr) records->choice_done();
    }
  }

  template <class Schedule>
  void reverse_chosen(Schedule& schedule) {
    if (is_resumed() && !records->is_in_sweep()) {
      skip_done(schedule);
    } else if (records != nullptr) {
      records->begin_reversal();
    }
    reverse_rest(schedule);
  }
};

}  // namespace

namespace {

/// The division of a backward part that makes its snapshots itself.
LoopDivision division_alone(const LoopGradient& gradient, Bytes run_budget, int threads) {
  const LoopGradient* const alone = &gradient;
  const LoopDivision own = divided({gradient.loop(), {&alone, 1}}, run_budget, threads);
  return {.snapshots = own.snapshots, .share = own.share};
}

}  // namespace

Bytes backward_workspace(const LoopGradient& gradient, const HeldComponents& held, Bytes room,
                         const LoopDivision& division, int threads) {
  if (room > 0 || division.kept > 0) return backward_memory(gradient, held, threads, division);
  const HeldComponents& needed = gradient.loop().held(gradient.held());
  if (needed.are_none()) return backward_memory(gradient, needed, threads, division);
  const LoopDivision own = division_alone(gradient, division.run_budget, threads);
  return held_bytes(needed, own) + backward_memory(gradient, needed, threads, own);
}

void run_backward(const LoopGradient& gradient, const KernelCall& call) {
  const Loop& loop = gradient.loop();
  LoopDivision division = division_given(call.outputs, call.inputs[loop.operand_count()], loop);
  if (division.kept > 0) return run_backward_from_kept(gradient, call, division);
  const bool has_room = call.outputs.back().type.bytes() > 0;
  const HeldComponents& components =
      has_room ? held_given(call.outputs, loop) : loop.held(gradient.held());
  const bool reads_states = !loop.held(gradient.held()).are_none();
  const Operand& snapshots = call.inputs[loop.operand_count()];
  const Operand* const count = loop.has_condition() ? &snapshots + 1 : nullptr;
  const auto steps =
      count == nullptr ? loop.steps() : static_cast<std::uint32_t>(*count->as<std::int64_t>());
  Cut cut(call.workspace);
  LoopArguments arguments(loop, call);
  const Operand& spent = call.outputs.back();
  internal_check(snapshots.type == spent.type, "the two parts of a loop hold different states");
  std::span<std::byte> room = memory_of(spent);
  bool are_given = !room.empty() && steps > 0;
  const bool are_shared = are_given && spent.data != snapshots.data;
  if (room.empty() && !components.are_none()) {
    division = division_alone(gradient, division.run_budget, call.threads);
    room = cut.take(held_bytes(components, division));
  }
  const Bytes share = division.share;
  const std::uint32_t ahead = division.ahead;
  LoopAdjoints adjoints(gradient, steps, division, call, cut);
  const StateBlock& state = components.block();
  Addresses blocks[] = {cut.take(state), cut.take(state)};
  std::vector<Addresses> blocks_ahead;
  for (std::uint32_t i = 0; i < 2 * ahead; ++i) blocks_ahead.push_back(cut.take(state));
  HeldStates held(components, arguments.first(), room, cut.take(components.decoded_bytes()));
  if (are_shared) {
    const Bytes end = held.layout().last + state.bytes;
    std::memcpy(room.data(), snapshots.data, static_cast<std::size_t>(end));
  }
  const auto runs =
      make_steps(components, &gradient, arguments,
                 cut.take(step_memory(components, &gradient, call.threads, share, ahead > 0)),
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
  std::shared_ptr<LoopJournal> journal;  // of the forward part, for this part alone
  if (loop.resume() != nullptr) {
    if (are_given && !are_shared) journal = handover->take_journal();
    if (journal != nullptr && !journal->take()) journal = nullptr;
    if (journal != nullptr && journal->is_finished() &&
        journal->position.adjoints != hash_of_adjoints(gradient, adjoints, steps)) {
      journal->leave();  // it has the results of another part, which a later process needs
      journal = nullptr;
    }
    const bool are_elsewhere = held.layout().disk && journal == nullptr;
    are_given = are_given && handover->has_states && !are_elsewhere;
    if (!are_given) held.set_file(nullptr);
  }
  // A part with a journal of its own loads hashes from it, while other parts load theirs.
  StateHashes own_hashes;
  const bool has_own_hashes = loop.resume() != nullptr && journal == nullptr;
  if (has_own_hashes) own_hashes = handover->hashes;
  StateHashes* const hashes = !loop.options().check ? nullptr
                              : has_own_hashes      ? &own_hashes
                                                    : &handover->hashes;
  Advance advance(components, Advance::Makes::components, *runs, arguments.first(), blocks[0],
                  blocks[1], hashes);
  std::optional<BackwardRecords> records;
  if (loop.resume() != nullptr && steps > 0) {
    records.emplace(BackwardRecords::Part{gradient,
                                          call,
                                          *runs,
                                          steps,
                                          advance,
                                          held,
                                          adjoints,
                                          std::ssize(room),
                                          share,
                                          hashes != nullptr ? &hashes->hashes() : nullptr,
                                          arguments.first(),
                                          {blocks[0], blocks[1]}},
                    std::move(journal));
    if (!records->is_open()) records.reset();
  }
  if (!records || !records->begin(are_given)) {
    Reversal reversal{loop,         steps,     arguments,   *runs,
                      held,         advance,   adjoints,    records ? &*records : nullptr,
                      blocks_ahead, are_given, reads_states};
    try {
      reversal.run();
    } catch (const StoppedError&) {
      if (records) records->stop();
      throw;
    }
    adjoints.finish(runs->untouched());
    if (records) records->end();
    if (records && records->is_given()) loop.resume()->forget_gradient(gradient.number());
  }
  if (are_shared && loop.resume() != nullptr) {
    // This part has a journal of its own, and the others too. So that of the forward part has
    // ended.
    const std::shared_ptr<LoopJournal> of_forward = handover->take_journal();
    if (of_forward != nullptr && of_forward->take()) {
      of_forward->finish(handover->hashes.hashes());
    }
  }
  if (are_shared && are_given) {
    handover->give_back(held.finish());
  } else if (are_given && scope != nullptr && held.layout().has_header) {
    scope->drop(held.handover_number());
  }
  const std::uint32_t reversed = reads_states ? steps : 0;
  if (loop.has_condition()) note(loop, call, steps, advance, reversed, &held);
  if (call.scope != nullptr) runs->note_native(*call.scope);
  if (scope == nullptr) return;
  if (records) records->note(scope->note<LoopCounts>(&loop));
}

}  // namespace palimpsest
