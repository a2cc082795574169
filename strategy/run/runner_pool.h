#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "strategy/run/buffer_runner.h"

namespace palimpsest {

/// Keeps runners between runs, so that the next run of the same program begins at once. It keeps a
/// few of those that were used last. Any thread may use it.
class RunnerPool {
 public:
  /// A runner that no other caller has, in `memory`.
  std::unique_ptr<BufferRunner> take(const BufferProgramPtr& program, std::span<std::byte> memory,
                                     RunControl* control, NativeCode native);
  /// Also after a run that threw an exception.
  void give_back(std::unique_ptr<BufferRunner> runner);

 private:
  std::unique_ptr<BufferRunner> find(const BufferProgramPtr& program, std::span<std::byte> memory,
                                     NativeCode native);

  std::mutex mutex_;
  std::vector<std::unique_ptr<BufferRunner>> idle_;  // the oldest first
};

}  // namespace palimpsest
