#pragma once

#include <functional>
#include <memory>

#include "strategy/backward.h"
#include "strategy/base/precision.h"

namespace palimpsest {

/// A program recorded, differentiated and planned once, to be run many times by `Runner`s. What it
/// computes is fixed; leaves can be given other tensors. Copies share everything, and any number of
/// threads may run it, each with a `Runner` of its own.
///
/// Its `Var`s are names: ask a `Runner` for values, and record nothing more with them. They, and
/// `Gradients`, are of use while some copy of the program is there.
class Program {
 public:
  /// Records on a fresh tape what is to be computed. `Var`s of its leaves, kept outside, name them
  /// later.
  using Record = std::function<std::vector<Var>(Tape&)>;
  using RecordLoss = std::function<Var(Tape&)>;

  /// Computes the values that `record` returns. Throws what recording throws, `BudgetError` when
  /// the budget is too small, `ArgumentError` when nothing is returned.
  static Program values(const Record& record, RunOptions options = {},
                        Where where = Where::current());
  /// The same in another precision than it is recorded in (see `precise`). Its outputs are other
  /// `Var`s than those returned, which name them too. Throws `ArgumentError` when the precision's
  /// narrow dtype is not one of 16 bits.
  static Program values(const Record& record, const Precision& precision, RunOptions options = {},
                        Where where = Where::current());
  /// Computes a loss and its gradients with respect to all parameters, as `backward` does. Throws
  /// `ShapeError` too, unless the loss has one element.
  static Program gradients(const RecordLoss& record, RunOptions options = {},
                           Where where = Where::current());
  /// The same in another precision than it is recorded in; parameters and their gradients have the
  /// dtypes recorded.
  static Program gradients(const RecordLoss& record, const Precision& precision,
                           RunOptions options = {}, Where where = Where::current());

  /// What it computes: the values returned, or the loss and then the gradients of the parameters.
  std::span<const Var> outputs() const;
  /// What was recorded.
  const Tape& tape() const;
  /// One schedule and layout for all runs.
  const Plan& plan() const;

 private:
  friend class Runner;
  struct State;

  static Program of_values(const Record& record, const Precision* precision, RunOptions options,
                           const Where& where);
  static Program of_gradients(const RecordLoss& record, const Precision* precision,
                              RunOptions options, const Where& where);
  explicit Program(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;
};

/// Runs a program: its own leaves, arena and results. For one thread at a time.
///
/// A run records and plans nothing and, unless `RunOptions::memory` says otherwise, uses the memory
/// of the run before, but for a tensor of it that somebody holds: it stays as it is, and the run
/// takes fresh memory.
class Runner {
 public:
  explicit Runner(Program program);
  ~Runner();
  Runner(Runner&&) noexcept;
  Runner& operator=(Runner&&) noexcept;

  /// Gives a leaf another tensor, whose storage it shares from the next run on. Throws
  /// `ArgumentError` for a `Var` that is no leaf of the program, `ShapeError` and `DTypeError` for
  /// a tensor of another type.
  void bind(const Var& leaf, const Tensor& tensor);

  /// Computes everything. Random operations draw in run k what they would on a tape that had been
  /// cleared k times. Throws what kernels throw, and `AnomalyError`.
  void run();

  /// What the last run computed for one of the program's outputs; of a leaf, or a view of one, what
  /// is bound to it now. Throws `ArgumentError` for any other value, and before the first run.
  Tensor value(const Var& output) const;
  /// The loss and gradients of the last run of a `Program::gradients`, with its report; the
  /// parameters are those recorded, also where another tensor was bound. Throws `ArgumentError` for
  /// another program, and before the first run.
  Gradients gradients() const;
  /// What the last run did. Throws `ArgumentError` before the first.
  Report report() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace palimpsest
