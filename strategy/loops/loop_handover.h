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
#include "strategy/loops/loop_journal.h"

namespace palimpsest {

/// The hashes of a loop's states, of the held components. They reveal a state that is recomputed
/// differently. Several threads may compare known states at the same time.
class StateHashes {
 public:
  void reserve(std::uint32_t states) { hashes_.reserve(states); }
  /// Records the hash of state `step`, or compares it with the known one. The hashes of all earlier
  /// states must be known. Throws `ArgumentError` where it differs.
  void meet(std::uint32_t step, const Addresses& state, const HeldComponents& held);

  /// To be saved, and loaded.
  std::vector<std::uint64_t>& hashes() { return hashes_; }

 private:
  std::vector<std::uint64_t> hashes_;  // of states 1, 2, …
};

/// The work of a loop in a run, over all its parts.
struct LoopCounts final : RunScope::Item {
  std::atomic<bool> are_counted = false;         ///< the next four
  std::atomic<std::uint64_t> steps = 0;          ///< length of the loop
  std::atomic<std::uint64_t> forward_steps = 0;  ///< steps run, with those run to be differentiated
  std::atomic<std::uint64_t> disk_writes = 0;    ///< stores on disk in its schedule
  std::atomic<std::uint64_t> disk_reads = 0;
  std::atomic<std::uint64_t> records = 0;          ///< of journals
  std::atomic<std::uint64_t> resumed = 0;          ///< parts that continued a journal
  std::atomic<std::uint64_t> states_repaired = 0;  ///< damaged states that were made again
};

/// Where a loop leaves state for later kernels of the run; null where it leaves none.
inline RunScope* state_scope(const KernelCall& call) {
  const bool keeps = call.scope != nullptr && call.scope->of != RunScope::Of::checkpoint;
  return keeps ? call.scope : nullptr;
}

/// State that a loop's forward part passes to its backward parts in the same run, in addition to
/// the states in memory.
class LoopHandover final : public RunScope::Item {
 public:
  StateHashes hashes;
  /// The forward part leaves its journal, or null.
  void leave_journal(std::shared_ptr<LoopJournal> journal) { journal_ = std::move(journal); }
  /// Null after the first call.
  std::shared_ptr<LoopJournal> take_journal() {
    const std::lock_guard lock(mutex_);
    return std::exchange(journal_, nullptr);
  }
  /// The states in memory were not made, because the journal continues in the backward part.
  bool has_states = true;

  /// The forward part leaves the file with held states, or null.
  void leave_file(std::shared_ptr<SpillFile> file) {
    has_file_ = file != nullptr;
    file_ = std::move(file);
  }
  bool has_file() const { return has_file_; }
  /// Null while another backward part has it.
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
  std::shared_ptr<LoopJournal> journal_;
};

}  // namespace palimpsest
