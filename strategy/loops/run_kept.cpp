#include <algorithm>
#include <functional>
#include <utility>

#include "strategy/loops/kept_values.h"
#include "strategy/loops/loop_adjoints.h"
#include "strategy/loops/loop_run.h"
#include "strategy/loops/loop_steps.h"

namespace palimpsest {
namespace {

/// The memory for all states but the first, in a row, followed by the values that the last steps
/// keep. Components that are not held are in one of two blocks, if these are given.
class KeptRoom {
 public:
  KeptRoom(const HeldComponents& held, const LoopDivision& division, const Addresses& first,
           std::byte* memory)
      : held_(held),
        state_(held.block()),
        values_(held.loop().kept(division.values).block),
        first_(first),
        states_at_(memory),
        values_at_(memory + bytes_in_row(held.loop().steps(), state_)),
        first_kept_(held.loop().steps() - division.kept) {}

  void set_others(Addresses even, Addresses odd) {
    others_[0] = std::move(even);
    others_[1] = std::move(odd);
  }
  /// Valid until another state whose number is of the same parity is asked for.
  const Addresses& state(std::uint32_t step) {
    if (step == 0) return first_;
    Addresses& at = at_[step % 2];
    state_.at(states_at_ + (step - 1) * state_.stride, at);
    if (!others_[step % 2].empty()) held_.complete(at, others_[step % 2]);
    return at;
  }
  void append_values(std::uint32_t step, Addresses& to) const {
    std::byte* const memory = values_at_ + (step - first_kept_) * values_.stride;
    for (const Bytes offset : values_.offsets) to.push_back(memory + offset);
  }

 private:
  const HeldComponents& held_;
  const StateBlock& state_;
  const StateBlock& values_;
  const Addresses& first_;
  std::byte* states_at_;
  std::byte* values_at_;
  std::uint32_t first_kept_;  // the first step that keeps values
  Addresses others_[2];
  Addresses at_[2];
};

void note(const KernelCall& call, const LoopSteps& steps) {
  if (call.scope != nullptr) steps.note_native(*call.scope);
}

}  // namespace

void run_forward_keeping(const HeldComponents& held, const KernelCall& call,
                         const LoopDivision& division) {
  const Loop& loop = held.loop();
  Cut cut(call.workspace);
  LoopArguments arguments(loop, call);
  KeptRoom room(held, division, arguments.first(), call.outputs.back().data);
  if (!held.are_all()) room.set_others(cut.take(loop.state()), cut.take(loop.state()));
  const Parts outputs(call.outputs.subspan(loop.state_count(), loop.output_count()), loop.steps());
  Addresses results;
  const auto run = [&](LoopSteps& steps, std::uint32_t begin, std::uint32_t end, bool keeps) {
    const auto addresses = [&](std::uint32_t step) -> LoopSteps::Forward {
      results = room.state(step + 1);
      outputs.append(step, results);
      if (keeps) room.append_values(step, results);
      return {room.state(step), results};
    };
    // The first state is elsewhere.
    const std::uint32_t row = std::max(begin, std::min(end, 1u));
    if (row > begin) steps.forward_row(begin, row - begin, std::ref(addresses), true);
    if (end > row) steps.forward_row(row, end - row, std::ref(addresses), true);
    note(call, steps);
  };
  const std::uint32_t first_kept = loop.steps() - division.kept;
  if (first_kept > 0) {
    run(*make_forward_steps(loop, loop.forward(), arguments, cut.left(), call.threads), 0,
        first_kept, false);
  }
  const StepPrograms& keeping = loop.kept(division.values).forward;
  run(*make_forward_steps(loop, keeping, arguments, cut.left(), call.threads), first_kept,
      loop.steps(), true);
  loop.state().copy(room.state(loop.steps()), addresses_of(call.outputs.first(loop.state_count())));
}

void run_backward_from_kept(const LoopGradient& gradient, const KernelCall& call,
                            const LoopDivision& division) {
  const Loop& loop = gradient.loop();
  Cut cut(call.workspace);
  LoopArguments arguments(loop, call);
  LoopAdjoints adjoints(gradient, loop.steps(), division, call, cut);
  const StepPrograms& from_kept = gradient.backward(loop.kept(division.values));
  const StepPrograms& whole = gradient.backward();
  const std::span<std::byte> memory = cut.take(
      std::max(from_kept.get(call.threads)->workspace(), whole.get(call.threads)->workspace()));
  KeptRoom room(held_given(call.outputs, loop), division, arguments.first(),
                call.inputs[loop.operand_count()].data);
  Addresses given;
  const auto reverse = [&](const StepPrograms& programs, std::uint32_t end, bool have_kept) {
    const auto steps = make_backward_steps(loop, programs, arguments, memory, call.threads);
    const auto addresses = [&](std::uint32_t step) -> LoopSteps::Backward {
      given.clear();
      if (have_kept) {
        given = room.state(step + 1);
        room.append_values(step, given);
      }
      const Addresses& of_results = adjoints.given(step);
      given.insert(given.end(), of_results.begin(), of_results.end());
      return {room.state(step), given, adjoints.results(step)};
    };
    adjoints.reverse_rows(end, [&](std::uint32_t step, std::uint32_t count) {
      steps->backward_row(step, count, std::ref(addresses));
    });
    note(call, *steps);
  };
  reverse(from_kept, loop.steps() - division.kept, true);
  if (division.kept < loop.steps()) reverse(whole, 0, false);
  adjoints.finish(gradient.untouched());
}

}  // namespace palimpsest
