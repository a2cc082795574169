#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "strategy/base/options.h"
#include "strategy/compile/kept_plannings.h"
#include "strategy/run/executor.h"

namespace palimpsest {

/// A step of a loop, or a piece of a program, planned: what is made of leaves, in memory that
/// whoever runs it names. Immutable; any number of `StepRunner`s may share it.
class StepProgram {
 public:
  struct Wanted {
    std::vector<ValueId> arguments;  ///< leaves
    std::vector<ValueId> results;    ///< may repeat, and may be arguments
    NodeId backward_begins;

    bool operator==(const Wanted&) const = default;
  };

  /// Plans for `threads` threads and, beside arguments and results, `options.memory_budget` bytes.
  /// Runs look for anomalies, and are profiled, where the options say so. Throws `BudgetError`.
  /// Plannings, if any are given, are kept for other budgets.
  StepProgram(std::shared_ptr<const Tape> tape, const Wanted& wanted, const RunOptions& options,
              int threads, KeptPlannings* plannings = nullptr);

  const Tape& tape() const { return *tape_; }
  /// Bytes that a run takes beside arguments and results.
  Bytes workspace() const { return instructions_->arena_size(); }
  int threads() const { return threads_; }
  /// Bytes that the program itself takes, about.
  Bytes bytes() const;
  /// What a run is predicted to take.
  double seconds() const { return seconds_; }
  /// The same of its longest kernel, and of the longest chain of kernels that wait for each other.
  double longest_seconds() const { return longest_seconds_; }
  double serial_seconds() const { return serial_seconds_; }
  /// Extra work as a fraction of computing everything once.
  double compute_overhead() const { return compute_overhead_; }
  /// Nodes that a run computes.
  std::uint32_t computed() const { return computed_; }
  /// Most bytes live at once beside arguments and results.
  Bytes live_peak() const { return live_peak_; }
  /// False for an argument that a run does not look at.
  bool reads(std::size_t argument) const { return arguments_[argument] != unread; }

 private:
  friend class StepRunner;

  /// Where a result comes from: it is made where it is wanted, or copied from there.
  struct Result {
    enum class From : std::uint8_t { made, argument, result, constant } from;
    std::size_t place;  ///< a source of the instructions, or a position
    std::size_t bytes;
  };
  Result find(ValueId value) const;

  static constexpr std::size_t unread = -1;

  std::shared_ptr<const Tape> tape_;
  int threads_;
  double seconds_ = 0;
  double longest_seconds_ = 0;
  double serial_seconds_ = 0;
  double compute_overhead_ = 0;
  std::uint32_t computed_ = 0;
  Bytes live_peak_ = 0;
  bool anomaly_;
  bool profile_;
  std::shared_ptr<const Instructions> instructions_;
  std::vector<std::size_t> arguments_;  // sources; `unread` where nothing reads them
  std::vector<Result> results_;
};

/// Runs a program, again and again, for one thread at a time.
class StepRunner {
 public:
  /// `memory` holds `program->workspace()` bytes, aligned to 64, and outlives the runner.
  StepRunner(std::shared_ptr<const StepProgram> program, std::span<std::byte> memory);

  /// `arguments` and `results` hold an address for each of the program's. No result overlaps an
  /// argument or another result.
  void run(std::span<std::byte* const> arguments, std::span<std::byte* const> results,
           std::uint32_t round);
  /// The same with the constants and numbers of another tape that records the same.
  void run(const Tape& tape, std::span<std::byte* const> arguments,
           std::span<std::byte* const> results, std::uint32_t round);

  /// For runs from here on, as in `Executor::Settings`.
  void set_after_step(const std::function<void(std::uint32_t)>* after_step) {
    after_step_ = after_step;
  }

  /// What the last run took.
  const Executor& executor() const { return executor_; }

 private:
  void bind_constants(const Tape& tape);
  void carry_out(const Tape& tape, std::span<std::byte* const> arguments,
                 std::span<std::byte* const> results, std::uint32_t round, bool again);

  std::shared_ptr<const StepProgram> program_;
  Arena arena_;
  Meter meter_;  // of nothing: all lies in the arena
  Executor executor_;
  bool has_run_ = false;  // with the tape of the program
  const std::function<void(std::uint32_t)>* after_step_ = nullptr;
};

}  // namespace palimpsest
