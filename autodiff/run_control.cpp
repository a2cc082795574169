#include "autodiff/run_control.h"

#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <bit>

#include "autodiff/error.h"
#include "autodiff/in_use.h"

namespace palimpsest {
namespace {

/// Most calls for the steps of a schedule, and of one pass through a loop.
constexpr std::uint64_t most_calls = 100;

/// Reports at most some 128 steps between two powers of two where the number of steps is unknown.
bool is_reported(std::uint64_t done, std::uint64_t all) {
  const std::uint64_t share = all > 0 ? all / most_calls : std::bit_floor(done) / 64;
  return done % std::max<std::uint64_t>(1, share) == 0 || (done == all && all > 0);
}

}  // namespace

void RunControl::throw_stopped() {
  throw StoppedError(
      "[run] stopped, as its stop token requested; what the run has not touched is unchanged, so "
      "run it again with another token");
}

void RunControl::step_done() {
  const std::uint64_t done = ++done_;
  if (progress_ != nullptr && is_reported(done, steps_)) report(0, 0);
}

void RunControl::loop_step(std::uint64_t step, std::uint64_t steps) {
  if (progress_ != nullptr && is_reported(step, steps)) report(step, steps);
}

void RunControl::report(std::uint64_t loop_step, std::uint64_t loop_steps) {
  // While the callback waits for parallel work of its own, its thread must not take another step.
  tbb::this_task_arena::isolate([&] {
    const std::lock_guard lock(mutex_);
    const UserCall call;
    (*progress_)({done_.load(), steps_, loop_step, loop_steps});
  });
}

}  // namespace palimpsest
