#include "strategy/loops/loop_division.h"

#include <algorithm>
#include <string>

#include "autodiff/execute.h"
#include "strategy/loops/loop_steps.h"

namespace palimpsest {
namespace {

Bytes fixed_forward(const Loop& loop) { return 2 * loop.state().bytes; }

Bytes fixed_backward(const LoopGradient& gradient) {
  const Loop& loop = gradient.loop();
  return 2 * loop.state().bytes + decoded_bytes(loop) + 2 * gradient.adjoints().bytes +
         gradient.sums().bytes;
}

}  // namespace

Bytes decoded_bytes(const Loop& loop) { return loop.codec().is_exact() ? 0 : loop.state().bytes; }

Bytes forward_memory(const Loop& loop, int threads, Bytes share) {
  return fixed_forward(loop) + step_memory(loop, nullptr, threads, share);
}

Bytes backward_memory(const LoopGradient& gradient, int threads, Bytes share) {
  return fixed_backward(gradient) + step_memory(gradient.loop(), &gradient, threads, share);
}

Bytes smallest_share(std::span<const LoopGradient* const> gradients, int threads) {
  Bytes share = smallest_share(gradients[0]->loop(), nullptr, threads);
  for (const LoopGradient* gradient : gradients) {
    share = std::max(share, smallest_share(gradient->loop(), gradient, threads));
  }
  return share;
}

Bytes largest_share(std::span<const LoopGradient* const> gradients, int threads) {
  Bytes share = step_memory(gradients[0]->loop(), nullptr, threads, unlimited);
  for (const LoopGradient* gradient : gradients) {
    share = std::max(share, step_memory(gradient->loop(), gradient, threads, unlimited));
  }
  return share;
}

LoopDivision own_division(std::span<const LoopGradient* const> gradients, int threads) {
  const Loop& loop = gradients[0]->loop();
  const Bytes budget = loop.options().memory_budget;
  if (budget == unlimited) return {loop.snapshots()};
  Bytes beside = fixed_forward(loop);
  for (const LoopGradient* gradient : gradients) {
    beside = std::max(beside, fixed_backward(*gradient));
  }
  beside += snapshot_bytes(0, loop);
  const Bytes room = budget - beside - largest_share(gradients, threads);
  if (room >= 0) {
    const std::uint32_t fitting = snapshots_in(snapshot_bytes(0, loop) + room, loop);
    return {loop.has_condition() ? fitting : std::min(fitting, loop.snapshots())};
  }
  const Bytes share = (budget - beside) / aligned(1) * aligned(1);
  const Bytes smallest = smallest_share(gradients, threads);
  if (share >= smallest) return {0, share};
  throw BudgetError("[" + std::string(loop.body().name()) + "] a loop's own memory budget of " +
                        std::to_string(budget) +
                        " bytes is too small; its steps and one state held take " +
                        std::to_string(beside + smallest) + " bytes",
                    budget, beside + smallest);
}

}  // namespace palimpsest
