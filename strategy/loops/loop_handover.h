#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "autodiff/run_scope.h"
#include "checkpoint/stores/spill_file.h"
#include "strategy/loops/loop.h"

namespace palimpsest {

/// The states that a loop has gone through, by their hashes: notices when a state is computed again
/// and is another one. What is known may be compared from several threads.
class StateHashes {
 public:
  void reserve(std::uint32_t states) { hashes_.reserve(states); }
  /// State `step` lies there, with all before it known. Throws `ArgumentError`.
  void meet(std::uint32_t step, const Addresses& state, const Loop& loop);

 private:
  std::vector<std::uint64_t> hashes_;  // of states 1, 2, …
};

/// What a run of a loop took, both parts together.
struct LoopCounts final : RunScope::Item {
  std::atomic<std::uint64_t> steps = 0;          ///< of the loop
  std::atomic<std::uint64_t> forward_steps = 0;  ///< run, those with a tape among them
  std::atomic<std::uint64_t> disk_writes = 0;    ///< stores on disk, as its schedule has them
  std::atomic<std::uint64_t> disk_reads = 0;
};

/// What the forward part of a loop leaves to its backward parts in the same run, beside the states
/// in memory.
class LoopHandover final : public RunScope::Item {
 public:
  StateHashes hashes;

  /// The forward part leaves the file that holds states, or null.
  void leave_file(std::shared_ptr<SpillFile> file) {
    has_file_ = file != nullptr;
    file_ = std::move(file);
  }
  bool has_file() const { return has_file_; }
  /// Null when another backward part has it at the moment.
  std::shared_ptr<SpillFile> take_file() {
    const std::lock_guard lock(mutex_);
    return std::exchange(file_, nullptr);
  }
  void give_back(std::shared_ptr<SpillFile> file) {
    const std::lock_guard lock(mutex_);
    file_ = std::move(file);
  }

 private:
  bool has_file_ = false;
  std::mutex mutex_;
  std::shared_ptr<SpillFile> file_;
};

}  // namespace palimpsest
