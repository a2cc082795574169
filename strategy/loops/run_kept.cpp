#include <algorithm>

#include "strategy/loops/kept_values.h"
#include "strategy/loops/loop_adjoints.h"
#include "strategy/loops/loop_run.h"
#include "strategy/loops/loop_steps.h"

namespace palimpsest {
namespace {

/// The memory for all states but the first, in a row, followed by the values that the last steps
/// keep.
class KeptRoom {
 public:
  KeptRoom(const Loop& loop, const LoopDivision& division, const Addresses& first,
           std::byte* memory)
      : state_(loop.state()),
        values_(loop.kept(division.values).block),
        first_(first),
        states_at_(memory),
        values_at_(memory + bytes_in_row(loop.steps(), loop.state())),
        first_kept_(loop.steps() - division.kept) {}

  /// Valid until another state whose number is of the same parity is asked for.
  const Addresses& state(std::uint32_t step) {
    if (step == 0) return first_;
    Addresses& at = at_[step % 2];
    state_.at(states_at_ + (step - 1) * state_.stride, at);
    return at;
  }
  void append_state(std::uint32_t step, Addresses& to) const {
    append(state_, states_at_ + (step - 1) * state_.stride, to);
  }
  void append_values(std::uint32_t step, Addresses& to) const {
    append(values_, values_at_ + (step - first_kept_) * values_.stride, to);
  }

 private:
  static void append(const StateBlock& block, std::byte* memory, Addresses& to) {
    for (const Bytes offset : block.offsets) to.push_back(memory + offset);
  }

  const StateBlock& state_;
  const StateBlock& values_;
  const Addresses& first_;
  std::byte* states_at_;
  std::byte* values_at_;
  std::uint32_t first_kept_;  // the first step that keeps values
  Addresses at_[2];
};

void note(const KernelCall& call, const LoopSteps& steps) {
  if (call.scope != nullptr) steps.note_native(*call.scope);
}

/// Reverses the steps of a loop from the last one down.
class KeptReversal {
 public:
  KeptReversal(std::uint32_t steps, KeptRoom& room, LoopAdjoints& adjoints)
      : steps_(steps), left_(steps), room_(room), adjoints_(adjoints) {}

  /// Reverses all steps down to `end`. They kept their values if `have_kept`.
  void reverse(LoopSteps& runs, std::uint32_t end, bool have_kept) {
    const auto addresses = [&](std::uint32_t step) -> LoopSteps::Backward {
      given_.clear();
      if (have_kept) {
        room_.append_state(step + 1, given_);
        room_.append_values(step, given_);
      }
      const Addresses& given = adjoints_.given(step);
      given_.insert(given_.end(), given.begin(), given.end());
      return {room_.state(step), given_, adjoints_.results(step)};
    };
    while (left_ > end) {
      const std::uint32_t step = left_ - 1;
      // The adjoints of the last step come from outside, and the first state is elsewhere.
      const bool is_alone = left_ == steps_ || step == 0;
      const std::uint32_t count = is_alone ? 1 : left_ - std::max(end, 1u);
      runs.backward_row(step, count, std::ref(addresses));
      adjoints_.reversed(count);
      left_ -= count;
    }
  }

 private:
  std::uint32_t steps_;
  std::uint32_t left_;
  KeptRoom& room_;
  LoopAdjoints& adjoints_;
  Addresses given_;
};

}  // namespace

void run_forward_keeping(const Loop& loop, const KernelCall& call, const LoopDivision& division) {
  LoopArguments arguments(loop, call);
  KeptRoom room(loop, division, arguments.first(), call.outputs.back().data);
  const Parts outputs(call.outputs.subspan(loop.state_count(), loop.output_count()), loop.steps());
  Addresses results;
  const auto run = [&](LoopSteps& steps, std::uint32_t begin, std::uint32_t end, bool keeps) {
    const auto addresses = [&](std::uint32_t step) -> LoopSteps::Forward {
      results.clear();
      room.append_state(step + 1, results);
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
    run(*make_forward_steps(loop, loop.forward(), arguments, call.workspace, call.threads), 0,
        first_kept, false);
  }
  const StepPrograms& keeping = loop.kept(division.values).forward;
  run(*make_forward_steps(loop, keeping, arguments, call.workspace, call.threads), first_kept,
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
  KeptRoom room(loop, division, arguments.first(), call.inputs[loop.operand_count()].data);
  KeptReversal reversal(loop.steps(), room, adjoints);
  const auto reverse = [&](const StepPrograms& programs, std::uint32_t end, bool have_kept) {
    const auto steps = make_backward_steps(loop, programs, arguments, memory, call.threads);
    reversal.reverse(*steps, end, have_kept);
    note(call, *steps);
  };
  reverse(from_kept, loop.steps() - division.kept, true);
  if (division.kept < loop.steps()) reverse(whole, 0, false);
  adjoints.finish(gradient.untouched());
}

}  // namespace palimpsest
