#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "autodiff/export.h"
#include "strategy/backward.h"
#include "strategy/base/precision.h"

namespace palimpsest PALIMPSEST_EXPORT {

struct ProgramParts;

/// A program that is recorded, differentiated and planned once, and then run many times by
/// `Runner`s, similar to a compiled function in JAX. Its computation is fixed; leaves can be given
/// other tensors. Copies share everything. Any number of threads may run it, each with a `Runner`
/// of its own. One exception is a program that updates tensors (see `Tape::update_after_run`): its
/// runners change the same tensors, so only one may run at a time.
///
/// Its `Var`s only identify values: ask a `Runner` for the values, and record nothing more with
/// them. They are valid while some copy of the program exists. While it is recorded, reading a
/// value that depends on a leaf throws `TapeError`, since each run has another one; so do
/// `backward`, `evaluate` and `jacobian`. Operations such as `nonzero` may, since each run checks
/// their count.
class Program {
 public:
  /// Records the program on a fresh tape. `Var`s of its leaves can be stored outside, to identify
  /// the leaves later.
  using Record = std::function<std::vector<Var>(Tape&)>;
  /// A loss, perhaps with auxiliary outputs.
  using RecordLoss = std::function<LossAndOutputs(Tape&)>;

  /// Computes the values that `record` returns. Throws what recording throws, `BudgetError` when
  /// the budget is too small, `ArgumentError` when nothing is returned.
  static Program values(const Record& record, RunOptions options = {},
                        Where where = Where::current());
  /// Likewise, in another precision than the recorded one (see `precise`). Its outputs are other
  /// `Var`s than the returned ones; both identify the outputs. Throws `ArgumentError` when the
  /// precision's narrow dtype is not one of 16 bits.
  static Program values(const Record& record, const Precision& precision, RunOptions options = {},
                        Where where = Where::current());
  /// Computes a loss, auxiliary outputs, and the gradients of the loss with respect to all
  /// parameters, as `backward` does. Throws
  /// as `values`, and `ShapeError` unless the loss has one element.
  static Program gradients(const RecordLoss& record, RunOptions options = {},
                           Where where = Where::current());
  /// Likewise, in another precision than the recorded one. Parameters and their gradients have the
  /// recorded dtypes.
  static Program gradients(const RecordLoss& record, const Precision& precision,
                           RunOptions options = {}, Where where = Where::current());

  /// The outputs: the returned values; or the loss, the auxiliary outputs, the values of updates,
  /// and the gradients of the parameters.
  std::span<const Var> outputs() const&;
  /// A temporary program may be the last copy, so it returns by value.
  std::vector<Var> outputs() const&& { return {outputs().begin(), outputs().end()}; }
  /// The recorded tape.
  const Tape& tape() const;
  /// The schedule and layout of all runs.
  const Plan& plan() const&;
  Plan plan() const&& { return plan(); }

 private:
  friend class Runner;
  friend ProgramParts parts_of(const Program& program);
  struct State;

  static Program of_values(const Record& record, const Precision* precision, RunOptions options,
                           const Where& where);
  static Program of_gradients(const RecordLoss& record, const Precision* precision,
                              RunOptions options, const Where& where);
  explicit Program(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;
};

/// Runs a program, with its own leaves, arena and results. Use it from one thread at a time.
///
/// Runners draw different random numbers: runner k of a program draws those of part k, in the order
/// of construction from 0 on. Part 0 draws what a tape draws on which the program is recorded. Part
/// k draws what it draws with a seed that is greater by k, as part k of a batch does in an
/// `Execution`. Within loops the numbers of part k are others, but also its own.
///
/// A run records and plans nothing. Unless `RunOptions::memory` says otherwise, it reuses the
/// memory of the previous run. If a tensor of that memory is still held elsewhere, the memory stays
/// unchanged and the run allocates new memory.
class Runner {
 public:
  explicit Runner(Program program);
  ~Runner();
  Runner(Runner&&) noexcept;
  Runner& operator=(Runner&&) noexcept;

  /// Replaces the tensor of a leaf. Its storage is shared from the next run on. Throws
  /// `ArgumentError` for a `Var` that is not a leaf of the program, `ShapeError` and `DTypeError`
  /// for a tensor of another type.
  void bind(const Var& leaf, const Tensor& tensor);

  /// Sets the part whose random numbers later runs draw. For runners that are constructed on
  /// several threads, in no certain order, or that are to draw the same numbers.
  void set_part(std::uint32_t part);
  std::uint32_t part() const;

  /// Computes everything. Random operations draw in run k what they would draw on a tape that had
  /// been cleared k times. Throws what kernels throw, and `AnomalyError`.
  void run();

  /// The result of the last run for one of the program's outputs. For a leaf, or a view of one, the
  /// tensor bound to it now. Throws `ArgumentError` for any other value, and before the first run.
  Tensor value(const Var& output) const;
  /// The loss, auxiliary outputs and gradients of the last run of a `Program::gradients`, with its
  /// report. The
  /// parameters are the recorded `Var`s. An `Optimizer` updates the tensors that are bound to them.
  /// Throws `ArgumentError` for another program, and before the first run.
  Gradients gradients() const;
  /// The report of the last run. Throws `ArgumentError` before the first run.
  Report report() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace palimpsest
