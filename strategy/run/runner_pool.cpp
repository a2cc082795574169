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
  std::unique_ptr<BufferRunner> runner = find(program, memory, native);
  if (runner == nullptr) {
    runner = std::make_unique<BufferRunner>(program, memory);
    runner->set_native(native);
  } else if (!runner->is_in(memory)) {
    runner->move_to(memory);
  }
  runner->set_control(control);
  return runner;
}

/// An idle runner, if there is any; best one that is in this memory already.
std::unique_ptr<BufferRunner> RunnerPool::find(const BufferProgramPtr& program,
                                               std::span<std::byte> memory, NativeCode native) {
  const auto serves = [&](const auto& each) { return each->serves(program, native); };
  const std::lock_guard lock(mutex_);
  idle_.reserve(most_idle);  // so that none is lost when it is given back
  auto found = std::ranges::find_if(
      idle_, [&](const auto& each) { return serves(each) && each->is_in(memory); });
  if (found == idle_.end()) found = std::ranges::find_if(idle_, serves);
  if (found == idle_.end()) return nullptr;
  std::unique_ptr<BufferRunner> runner = std::move(*found);
  idle_.erase(found);
  return runner;
}

void RunnerPool::give_back(std::unique_ptr<BufferRunner> runner) {
  runner->forget_addresses();
  std::unique_ptr<BufferRunner> dropped;  // outside the lock, since it may hold a whole program
  const std::lock_guard lock(mutex_);
  if (idle_.size() == most_idle) {
    dropped = std::move(idle_.front());
    idle_.erase(idle_.begin());
  }
  idle_.push_back(std::move(runner));
}

}  // namespace palimpsest
