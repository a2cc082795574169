#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "autodiff/run_scope.h"
#include "strategy/base/options.h"
#include "strategy/compile/native/machine_code.h"

namespace palimpsest {

/// The native code of instructions: none yet, in the making, or ready. All executors of the
/// instructions share it. Members are thread-safe.
class NativeProgram final : public Instructions::Attachment,
                            public std::enable_shared_from_this<NativeProgram> {
 public:
  explicit NativeProgram(const Instructions& instructions);

  /// Returns the object of these instructions. It is made on first use, and lives as long as they.
  static std::shared_ptr<NativeProgram> of(const Instructions& instructions);

  /// The code for a run that begins now; null if it is interpreted. `at_once` waits for the
  /// compiler. `automatic` counts the run. When the runs have taken so long that code pays, another
  /// thread makes it. Code that is returned stays until this object is destroyed.
  const MachineCode* code_for(const Instructions& instructions, const Tape& tape, NativeCode mode) {
    const MachineCode* const code = ready_.load(std::memory_order_acquire);
    if (code != nullptr || is_decided_.load(std::memory_order_relaxed)) return code;
    return count(instructions, tape, mode);
  }

  /// The code, if it is ready.
  const MachineCode* code() const { return ready_.load(std::memory_order_acquire); }
  /// Number of fused groups with code, and their share of the predicted time of all instructions.
  std::uint32_t groups() const;
  double share() const;
  /// Why groups are interpreted although code was requested; empty otherwise.
  std::string problem() const;

  /// Called by the thread that compiles.
  void make(const CompilePriority& priority);
  /// The program stays interpreted.
  void fail(std::string problem);

 private:
  const MachineCode* count(const Instructions& instructions, const Tape& tape, NativeCode mode);
  bool prepare(const Instructions& instructions, const Tape& tape);

  double group_seconds_ = 0;  // predicted, of a run's fused groups
  double seconds_ = 0;        // predicted, of a run
  double paying_runs_ = 0;    // from so many on, code pays
  std::atomic<std::uint64_t> runs_ = 0;
  std::atomic<bool> is_decided_ = false;  // code is ready, in the making, or impossible
  std::atomic<const MachineCode*> ready_ = nullptr;

  mutable std::mutex mutex_;  // guards the following
  ProgramSource source_;
  std::unique_ptr<const MachineCode> code_;
  std::string problem_;
  std::uint32_t groups_ = 0;
  double share_ = 0;
};

/// The note of a run about a program of one of its kernels, such as a loop's.
struct NativeNote final : RunScope::Item {
  std::shared_ptr<const NativeProgram> program;
};

/// Replaces `automatic` by the mode that the environment variable PALIMPSEST_NATIVE names. Throws
/// `ArgumentError` if it names none.
NativeCode decided(NativeCode mode);

}  // namespace palimpsest
