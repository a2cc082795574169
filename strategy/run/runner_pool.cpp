#include "strategy/run/runner_pool.h"

#include <algorithm>
#include <utility>

namespace palimpsest {
namespace {

/// Enough for both parts of a loop, with and without kept values, on two threads.
constexpr std::size_t most_idle = 8;

}  // namespace

std::unique_ptr<BufferRunner> RunnerPool::take(const BufferProgramPtr& program,
                                               std::span<std::byte> memory, RunControl* control,
                                               NativeCode native) {
  std::unique_ptr<BufferRunner> runner;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(
        idle_, [&](const auto& each) { return each->serves(program, memory, native); });
    if (found != idle_.end()) {
      runner = std::move(*found);
      idle_.erase(found);
    }
  }
  if (runner == nullptr) {
    runner = std::make_unique<BufferRunner>(program, memory);
    runner->set_native(native);
  }
  runner->set_control(control);
  return runner;
}

void RunnerPool::give_back(std::unique_ptr<BufferRunner> runner) {
  runner->forget_addresses();
  const std::lock_guard lock(mutex_);
  if (idle_.size() == most_idle) idle_.erase(idle_.begin());
  idle_.push_back(std::move(runner));
}

}  // namespace palimpsest
