#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "autodiff/run_control.h"
#include "autodiff/run_scope.h"
#include "strategy/base/options.h"
#include "strategy/compile/native/machine_code.h"
#include "strategy/compile/native/speed_trial.h"

namespace palimpsest {

/// The native code of instructions: none yet, in the making, or ready. All executors of the
/// instructions share it. Members are thread-safe.
class NativeProgram final : public Instructions::Attachment,
                            public std::enable_shared_from_this<NativeProgram> {
 public:
  explicit NativeProgram(const Instructions& instructions);

  /// Returns the object of these instructions. It is made on first use, and lives as long as they.
  static std::shared_ptr<NativeProgram> of(const Instructions& instructions);

  /// What a run gets.
  struct Service {
    const MachineCode* code = nullptr;  ///< null if it is interpreted
    bool is_timed = false;              ///< the time of the run is to be passed to `add_time`
  };
  /// The code for a run that begins now. `at_once` waits for the compiler, which ends when the run
  /// is stopped; the next run then starts it again. `automatic` counts the run. When the runs have
  /// taken so long that code pays, another thread makes it. Then runs with and without it are
  /// timed, and the faster kind serves all later runs. Code that is returned stays until this
  /// object is destroyed. It may not fit the numbers of the run: see `retire`.
  Service service_for(const Instructions& instructions, const Tape& tape, NativeCode mode,
                      const RunControl* control = nullptr) {
    if (mode == NativeCode::at_once) return {made_at_once(instructions, tape, control)};
    const MachineCode* const code = chosen_.load(std::memory_order_acquire);
    if (code != nullptr || is_settled_.load(std::memory_order_relaxed)) return {code};
    return count(instructions, tape);
  }
  /// Called when `code` does not fit the numbers of a run: it serves no more. Later calls of
  /// `service_for` have code made that reads all numbers.
  void retire(const MachineCode& code);
  /// Adds the time of a run that `service_for` asked for, by `code` or, without any, interpreted.
  void add_time(const MachineCode* code, double seconds);

  /// Facts for a report about runs in a mode.
  struct Facts {
    bool serves = false;             ///< there is code that was not found to be slower
    bool has_run = false;            ///< it has a function for all instructions
    Bytes code = 0;                  ///< bytes, with retired code
    double compile_seconds = 0;      ///< likewise
    std::uint32_t groups = 0;        ///< fused groups with code
    double share = 0;                ///< of these, of the predicted time of all instructions
    double seconds = 0;              ///< least time of the last native runs that were timed
    double interpreted_seconds = 0;  ///< likewise, of interpreted runs; both 0 before a native one
    std::string problem;             ///< why groups are interpreted although code was requested
  };
  Facts facts(NativeCode mode) const;

  /// Has the source compiled, and loads the code. If that fails, the program stays interpreted.
  void make(const CompilePriority& priority);

 private:
  void load(const CompilePriority& priority);
  void fail(std::string problem);
  const MachineCode* code() const { return ready_.load(std::memory_order_acquire); }
  const MachineCode* made_at_once(const Instructions& instructions, const Tape& tape,
                                  const RunControl* control);
  Service count(const Instructions& instructions, const Tape& tape);
  bool prepare(const Instructions& instructions, const Tape& tape);

  double group_seconds_ = 0;  // predicted, of a run's fused groups
  double seconds_ = 0;        // predicted, of a run
  double paying_runs_ = 0;    // from so many on, code pays
  std::atomic<std::uint64_t> runs_ = 0;
  std::atomic<bool> is_decided_ = false;  // code is ready, in the making, or impossible
  std::atomic<const MachineCode*> ready_ = nullptr;
  // Of automatic runs:
  std::atomic<const MachineCode*> chosen_ = nullptr;  // it was faster
  std::atomic<bool> is_settled_ = false;              // nothing changes unless code is retired

  mutable std::mutex mutex_;  // guards the following
  ProgramSource source_;
  std::unique_ptr<const MachineCode> code_;
  std::unique_ptr<const MachineCode> retired_;  // other runs may still use it
  SpeedTrial trial_;
  std::string problem_;
  std::string interpreted_groups_;  // how many, and why the first one has no code
  std::uint32_t groups_ = 0;
  double share_ = 0;
};

/// The note of a run about a program of one of its kernels, such as a loop's.
struct NativeNote final : RunScope::Item {
  explicit NativeNote(std::shared_ptr<const NativeProgram> about) : program(std::move(about)) {}
  const std::shared_ptr<const NativeProgram> program;
};

/// Replaces `automatic` by the mode that the environment variable PALIMPSEST_NATIVE names. Throws
/// `ArgumentError` if it names none.
NativeCode decided(NativeCode mode);

}  // namespace palimpsest
