#include "strategy/loops/loop_run.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "autodiff/execute.h"
#include "checkpoint/chains/online.h"
#include "strategy/loops/loop_adjoints.h"
#include "strategy/loops/loop_steps.h"

namespace palimpsest {
namespace {

/// Runs steps forward; the state at hand lies where it was made, or where it was restored.
class Advance {
 public:
  Advance(LoopSteps& steps, const Addresses& first, Addresses a, Addresses b)
      : steps_(steps), free_{std::move(a), std::move(b)}, state_(first) {}

  const Addresses& state() const { return state_; }
  void restore(const Addresses& state, std::uint32_t step) {
    state_ = state;
    step_ = step;
  }
  /// Runs the steps before `step`; the last of them makes the state in `target` when there is one.
  void to(std::uint32_t step, const Addresses* target, const Parts* outputs = nullptr) {
    while (step_ < step) {
      const bool last = step_ + 1 == step && target != nullptr;
      results_ = last ? *target : free_[state_ == free_[0] ? 1 : 0];
      if (outputs != nullptr) outputs->append(step_, results_);
      steps_.forward(step_, state_, results_, outputs != nullptr);
      state_.assign(results_.begin(), results_.begin() + std::ssize(free_[0]));
      ++step_;
    }
  }

 private:
  LoopSteps& steps_;
  Addresses free_[2];
  Addresses state_;
  Addresses results_;
  std::uint32_t step_ = 0;
};

/// Where states are held, by the slots of a schedule: the first lies in the loop's input.
class Slots {
 public:
  Slots(const Loop& loop, const LoopArguments& arguments, std::span<std::byte> memory)
      : loop_(loop), first_(arguments.first()), memory_(memory) {}

  std::uint32_t count() const { return 1 + snapshots_in(std::ssize(memory_), loop_); }
  Addresses operator[](std::uint32_t slot) const {
    return slot == 0 ? first_ : loop_.state().at(memory_.data() + (slot - 1) * bytes());
  }
  /// Where the forward part leaves the last state that a step reads.
  Addresses last() const { return (*this)[count()]; }

 private:
  std::size_t bytes() const { return static_cast<std::size_t>(loop_.state().bytes); }

  const Loop& loop_;
  const Addresses& first_;
  std::span<std::byte> memory_;
};

/// Carries out what is left of `schedule`, until `reverse(step)` returns false. State `last` is
/// left in its place among the slots.
template <class Schedule, class F>
void carry_out(Schedule& schedule, const Slots& slots, Advance& advance, const Parts* outputs,
               std::uint32_t last, F reverse) {
  using Kind = ChainAction::Kind;
  std::optional<ChainAction> action = schedule.next();
  while (action) {
    const ChainAction now = *action;
    action = schedule.next();
    if (now.kind == Kind::advance) {
      // States are made where they are held.
      const Addresses target = action->kind == Kind::store ? slots[action->slot] : slots.last();
      const bool at_last = action->kind == Kind::reverse && now.step == last;
      const bool held = action->kind == Kind::store || at_last;
      advance.to(now.step, held ? &target : nullptr, outputs);
    } else if (now.kind == Kind::restore) {
      advance.restore(slots[now.slot], now.step);
    } else if (now.kind == Kind::reverse && !reverse(now.step)) {
      return;
    }
  }
}

}  // namespace

std::uint32_t snapshots_in(Bytes bytes, const Loop& loop) {
  if (loop.state().bytes == 0) return loop.snapshots();
  if (bytes == 0) return 0;
  return static_cast<std::uint32_t>(std::min<Bytes>(bytes / loop.state().bytes - 1,
                                                    std::numeric_limits<std::uint32_t>::max() - 1));
}

Bytes snapshot_bytes(std::uint32_t snapshots, const Loop& loop) {
  return (Bytes{snapshots} + 1) * loop.state().bytes;
}

Bytes forward_workspace(const Loop& loop, int threads) {
  return 2 * loop.state().bytes + step_memory(loop, nullptr, threads);
}

namespace {

/// Steps until the condition says no more; what is to be held goes into slots.
std::uint32_t run_while(const Loop& loop, LoopSteps& steps, const Slots& slots, bool holds,
                        Advance& advance) {
  OnlineSnapshots online(slots.count());
  std::uint32_t step = 0;
  for (; steps.goes_on(step, advance.state()); ++step) {
    if (step >= loop.options().max_steps) {
      throw ArgumentError("while_loop",
                          "more than " + std::to_string(step) +
                              " steps, and the condition still holds; see LoopOptions::max_steps",
                          loop.body().where);
    }
    const std::optional<ChainAction> store = holds ? online.before_step() : std::nullopt;
    if (store) loop.state().copy(advance.state(), slots[store->slot]);
    advance.to(step + 1, nullptr);
  }
  return step;
}

/// Leaves `schedule`, of which the forward part has carried out the first sweep, behind that, and
/// returns where the state lies that the last step reads.
Addresses skip_sweep(BinomialSchedule& schedule, const Slots& slots) {
  Addresses at_hand = slots[0];
  for (auto action = schedule.next(); action->kind != ChainAction::Kind::reverse;) {
    const bool stored = action->kind == ChainAction::Kind::store;
    at_hand = stored ? slots[action->slot] : slots.last();
    action = schedule.next();
  }
  return at_hand;
}

}  // namespace

void run_forward(const Loop& loop, const KernelCall& call) {
  Cut cut(call.workspace);
  LoopArguments arguments(loop, call);
  Addresses blocks[] = {cut.take(loop.state()), cut.take(loop.state())};
  const auto steps = make_steps(loop, nullptr, arguments,
                                cut.take(step_memory(loop, nullptr, call.threads)), call.threads);
  Advance advance(*steps, arguments.first(), blocks[0], blocks[1]);
  const Parts outputs(call.outputs.subspan(loop.state_count(), loop.output_count()), loop.steps());
  const Addresses last = addresses_of(call.outputs.first(loop.state_count()));
  const Slots slots(loop, arguments, memory_of(call.outputs.back()));
  const bool holds = call.outputs.back().type.bytes() > 0;
  if (loop.has_condition()) {
    const std::int64_t count = run_while(loop, *steps, slots, holds, advance);
    *call.outputs[loop.state_count()].as<std::int64_t>() = count;
  } else {
    if (holds && loop.steps() > 0) {
      BinomialSchedule schedule(loop.steps(), slots.count());
      carry_out(schedule, slots, advance, &outputs, loop.steps() - 1,
                [](std::uint32_t) { return false; });
    }
    advance.to(loop.steps(), &last, &outputs);
  }
  loop.state().copy(advance.state(), last);
}

namespace {

/// Beside what states are held in.
Bytes backward_memory(const LoopGradient& gradient, int threads) {
  const Loop& loop = gradient.loop();
  return 2 * loop.state().bytes + 2 * gradient.adjoints().bytes + gradient.sums().bytes +
         step_memory(loop, &gradient, threads);
}

}  // namespace

std::uint32_t own_snapshots(const LoopGradient& gradient, int threads) {
  const Loop& loop = gradient.loop();
  const Bytes budget = loop.options().memory_budget;
  if (budget == unlimited) return loop.snapshots();
  const Bytes steps =
      std::max(forward_workspace(loop, threads), backward_memory(gradient, threads));
  const Bytes least = steps + snapshot_bytes(0, loop);
  if (budget < least) {
    throw BudgetError("[scan] a loop's own memory budget of " + std::to_string(budget) +
                          " bytes is too small; its steps and one state held take " +
                          std::to_string(least) + " bytes",
                      budget, least);
  }
  const std::uint32_t fitting = snapshots_in(budget - steps, loop);
  return loop.has_condition() ? fitting : std::min(fitting, loop.snapshots());
}

Bytes backward_workspace(const LoopGradient& gradient, Bytes snapshots, int threads) {
  const Loop& loop = gradient.loop();
  const Bytes own = snapshots == 0 ? snapshot_bytes(own_snapshots(gradient, threads), loop) : 0;
  return own + backward_memory(gradient, threads);
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
  const bool are_given = snapshots.type.bytes() > 0 && steps > 0;
  std::span<std::byte> held = memory_of(spent);
  if (are_given && spent.data != snapshots.data) {
    std::memcpy(spent.data, snapshots.data, held.size());
  }
  internal_check(snapshots.type == spent.type, "the two parts of a loop hold different states");
  if (snapshots.type.bytes() == 0) {
    held = cut.take(snapshot_bytes(own_snapshots(gradient, call.threads), loop));
  }
  const Slots slots(loop, arguments, held);

  Addresses blocks[] = {cut.take(loop.state()), cut.take(loop.state())};
  const auto runs = make_steps(loop, &gradient, arguments,
                               cut.take(step_memory(loop, &gradient, call.threads)), call.threads);
  Advance advance(*runs, arguments.first(), blocks[0], blocks[1]);
  const auto reverse = [&](std::uint32_t step) {
    const Addresses& given = adjoints.given(step);
    runs->backward(step, advance.state(), given, adjoints.results(step));
    return true;
  };
  if (are_given && loop.has_condition()) {
    OnlineSnapshots online(slots.count());
    for (std::uint32_t step = 0; step < steps; ++step) online.before_step();
    OnlineReversal schedule(online);
    carry_out(schedule, slots, advance, nullptr, none, reverse);
  } else {
    BinomialSchedule schedule(steps, slots.count());
    if (are_given) {
      advance.restore(skip_sweep(schedule, slots), steps - 1);
      reverse(steps - 1);
    }
    carry_out(schedule, slots, advance, nullptr, none, reverse);
  }
  adjoints.finish(runs->untouched());
}

}  // namespace palimpsest
