#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "autodiff/run_scope.h"
#include "strategy/base/options.h"
#include "strategy/base/report.h"
#include "strategy/compile/loop_state_budgets.h"
#include "strategy/loops/loop_operation.h"

namespace palimpsest {

/// A loop that a run differentiates, and what is known of it before the run.
struct LoopOfRun {
  Report::Loop planned;
  /// The key of the run's notes about it. Only its address is used; it may be gone.
  const Loop* loop;
};

/// The reports of loops, completed by the notes of a run.
std::vector<Report::Loop> reports_of(std::span<const LoopOfRun> loops,
                                     const RunScope::Notes& notes);

/// Divides a budget between the states of loops and everything else. Keeps the decision for the
/// program that it was asked for last. This also says what the program would take if its loops held
/// all states and values, which plans, reports and limits of planners are compared with.
class LoopBudgets final : public LoopStateBudgets {
 public:
  /// Loops hold only states where programs also serve other tapes of the same structure, since the
  /// loops of these have not chosen values. Likewise where the memory for values is not known.
  enum class Keeps : std::uint8_t { states, states_and_values };
  explicit LoopBudgets(Keeps keeps = Keeps::states_and_values) : keeps_(keeps) {}

  /// Gives the loops whose backward part is run as much memory for states as the budget leaves, or
  /// as their own options say, and other loops none. Steps of all loops take what they take without
  /// a budget or, where that is too much, less.
  std::optional<BudgetError> reserve(Tape& tape, const ProgramSpec& spec,
                                     const RunOptions& options) override;
  std::optional<KeepAll> keep_all() const override;
  std::vector<Explanation::LoopSteps> steps() const override { return steps_; }
  Bytes peak_bound(Tape& tape, const ProgramSpec& spec, const RunOptions& options) override;
  std::unique_ptr<LoopStateBudgets> for_copy_of(const Tape& tape) const override;
  std::string summary() const override;
  /// The loops that were given memory last.
  const std::vector<LoopOfRun>& loops() const { return loops_; }

 private:
  struct Decision {
    std::vector<std::uint64_t> fingerprint;  // of the program and the request
    std::vector<LoopDivision> divisions;     // of its loops
    std::vector<LoopDivision> whole;         // those that hold everything
    std::vector<double> extra_seconds;       // of the loops, compared with these
    std::optional<KeepAll> keep_all;
  };
  /// By loop, values that are worth keeping; null if there are none.
  using Values = std::vector<const KeptValues*>;

  Values values_worth_keeping(std::span<const RecordedLoop> loops, const RunOptions& options) const;
  Values values_within(std::span<const RecordedLoop> loops, const RunOptions& options) const;
  Decision divide(Tape& tape, const ProgramSpec& spec, const RunOptions& options,
                  std::span<const RecordedLoop> loops, const Values& values) const;
  static void compare_with_whole(Tape& tape, const ProgramSpec& spec, const RunOptions& options,
                                 std::span<const RecordedLoop> loops, Decision& made);
  void decide(Tape& tape, const ProgramSpec& spec, const RunOptions& options);

  Keeps keeps_;
  Decision last_;
  bool is_decided_ = false;  // by the last reservation
  std::vector<LoopOfRun> loops_;
  std::vector<Explanation::LoopSteps> steps_;
};

/// Takes the memory for states back from the loops of a tape at the end of the scope.
class LoopBudgetScope {
 public:
  explicit LoopBudgetScope(Tape& tape) : tape_(tape) {}
  ~LoopBudgetScope();
  LoopBudgetScope(const LoopBudgetScope&) = delete;
  LoopBudgetScope& operator=(const LoopBudgetScope&) = delete;

 private:
  Tape& tape_;
};

}  // namespace palimpsest
