#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "checkpoint/or_refusal.h"
#include "strategy/compile/compiled_program.h"
#include "strategy/compile/loop_state_budgets.h"
#include "strategy/compile/program_cache.h"

namespace palimpsest {

/// A compiled program that reads its leaves from buffers and writes its results to buffers. The
/// caller of a run provides both. Examples are a step of a loop and a part of a program. It keeps
/// its tape. Immutable; any number of runners may share it.
class BufferProgram {
 public:
  /// The origin of a result: the run writes it to its buffer (`made`), or it is copied from an
  /// argument, another result or a constant.
  struct Result {
    enum class From : std::uint8_t { made, argument, result, constant } from;
    std::size_t place;  ///< a source of the instructions, or a position
    std::size_t bytes;
  };

  BufferProgram(std::shared_ptr<const Tape> tape, const BufferInterface& interface,
                std::shared_ptr<const CompiledProgram> compiled, const RunOptions& options);

  const Tape& tape() const { return *tape_; }
  const std::shared_ptr<const Instructions>& instructions() const {
    return compiled_->instructions;
  }
  const Plan& plan() const { return *compiled_->plan; }
  /// Bytes that a run takes in addition to arguments and results.
  Bytes workspace() const { return instructions()->arena_size(); }
  /// Number of threads, and whether runs look for anomalies and are profiled.
  int threads() const { return threads_; }
  bool looks_for_anomalies() const { return anomaly_; }
  bool is_profiled() const { return profile_; }
  /// Approximate bytes of the program.
  Bytes bytes() const;

  /// Predicted seconds of a run, of its longest kernel, and of its longest chain of dependent
  /// kernels.
  double seconds() const { return plan().simulation.cost; }
  double longest_seconds() const { return longest_seconds_; }
  double serial_seconds() const { return serial_seconds_; }
  /// Number of nodes that a run computes.
  std::uint32_t computed() const { return plan().simulation.computed; }
  /// Most bytes live at once in addition to arguments and results.
  Bytes live_peak() const { return plan().simulation.peak; }

  static constexpr std::size_t unread = -1;
  /// By argument: its source in the instructions; `unread` if a run does not read it.
  std::span<const std::size_t> arguments() const { return arguments_; }
  bool reads(std::size_t argument) const { return arguments_[argument] != unread; }
  std::span<const Result> results() const { return results_; }
  /// By their numbers: true if a run may write a result over an argument that was donated to it.
  /// The result replaces the argument in place, after all other reads. Also true if it is the
  /// argument itself. Two results must not be written over the same argument.
  bool may_write_over(std::size_t result, std::size_t argument) const;

 private:
  Result find(ValueId value) const;
  void find_replacements(const BufferInterface& interface);

  std::shared_ptr<const Tape> tape_;
  std::shared_ptr<const CompiledProgram> compiled_;
  int threads_;
  bool anomaly_;
  bool profile_;
  double longest_seconds_ = 0;
  double serial_seconds_ = 0;
  std::vector<std::size_t> arguments_;
  std::vector<Result> results_;
  std::vector<std::pair<std::size_t, std::size_t>> replacements_;  // of arguments by results
};
using BufferProgramPtr = std::shared_ptr<const BufferProgram>;

/// Compiles the results that `interface` names, for `options.threads` threads, within
/// `options.memory_budget` bytes in addition to arguments and results. `cache`, if given, serves
/// the same program within other budgets.
OrRefusal<BufferProgramPtr> compile_for_buffers(const std::shared_ptr<Tape>& tape,
                                                const BufferInterface& interface,
                                                const RunOptions& options, LoopStateBudgets& loops,
                                                ProgramCache* cache = nullptr);

}  // namespace palimpsest
