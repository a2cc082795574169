#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "autodiff/run_scope.h"
#include "checkpoint/chains/disk_costs.h"
#include "checkpoint/reverse/journal_directory.h"
#include "strategy/loops/loop_journal.h"
#include "strategy/loops/scan.h"
#include "strategy/loops/step_recorder.h"

namespace palimpsest {

/// Where a loop is recorded.
struct LoopPlace {
  NodeId node = 0;         ///< its number on the tape
  std::uint32_t part = 0;  ///< of the tape
};

/// The part of a loop with `LoopOptions::resume` that other loops lack. Its journals are in
/// directories of their own, named after the loop's place on the tape and the part of the loop.
/// Each part of a batch has a directory for these.
class LoopResume {
 public:
  /// Locks the directory for all loops of this process that use it. Throws `EnvironmentError` if
  /// another process uses it, and `FileError`.
  LoopResume(const LoopOptions& options, const StepBody& body, const LoopPlace& place);

  /// How an earlier process ran a part of the loop, if it did not end its run; else null. The
  /// schedule must be the same in this process, although costs are measured again.
  const LoopPosition* found(const std::string& part) const {
    const auto found = found_.find(part);
    return found == found_.end() ? nullptr : &found->second;
  }

  /// The costs of the disk that an earlier process measured, also where its run has ended.
  const std::optional<DiskCosts>& found_costs() const { return found_costs_; }

  /// Removes the journal that an earlier process left of a backward part, if it did not end. The
  /// part has ended with another journal.
  void forget_gradient(std::uint32_t number) const;

  /// Opens the journal of a part. A run that runs the part again gets the same one, or null if
  /// another part uses it now. Throws as `Journal`.
  std::shared_ptr<LoopJournal> open(const Loop& loop, const std::string& part,
                                    std::vector<std::string> identity, const RunScope* scope) const;

  /// The smallest number that no other derivative of the loop has.
  std::uint32_t take_number() const;
  void give_back_number(std::uint32_t number) const;

  /// The part that holds states for a backward part, and the part that does not.
  static constexpr const char* with_states = "states";
  static constexpr const char* without_states = "values";
  /// A backward part that makes its states itself.
  static std::string gradient(std::uint32_t number) { return "gradient-" + std::to_string(number); }

 private:
  struct Open {
    std::weak_ptr<LoopJournal> journal;
    const RunScope* scope;
  };
  std::string prefix_of_all() const;
  std::string directory_of(const std::string& part) const;

  std::string directory_;
  NodeId node_;
  std::shared_ptr<DirectoryLock> lock_;
  std::map<std::string, LoopPosition> found_;  // by part
  std::set<std::string> unfinished_;           // parts
  std::optional<DiskCosts> found_costs_;
  mutable std::mutex mutex_;  // protects the members below
  mutable std::map<std::string, Open> open_;
  mutable std::set<std::uint32_t> numbers_;
};

}  // namespace palimpsest
