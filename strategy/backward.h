#pragma once

#include <concepts>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autodiff/export.h"
#include "autodiff/var.h"
#include "strategy/base/dump_level.h"
#include "strategy/base/loss_and_outputs.h"
#include "strategy/base/loss_counts.h"
#include "strategy/base/options.h"
#include "strategy/base/report.h"
#include "strategy/compile/forecast.h"
#include "strategy/evaluators/rates.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// The result of `backward`: the loss, a gradient for every parameter of the tape, and the report.
/// It may outlive the tape, which only `operator[]` and the `Var`s need.
class Gradients {
 public:
  struct Entry {
    /// Reads the parameter's value and name from its tape.
    Entry(const Var& parameter, Tensor gradient);
    Entry(const Var& parameter, Tensor gradient, Tensor value, std::string name);

    Var parameter;
    Tensor gradient;
    Tensor value;      ///< shares the parameter's storage; an `Optimizer` updates it
    std::string name;  ///< with its scopes, as in "layer3/weight"; empty without a name
  };

  Gradients(Tensor loss, std::vector<Entry> entries, Report report,
            std::vector<Tensor> outputs = {});

  /// The gradient of the loss with respect to `parameter`: of its shape and dtype, zeros when the
  /// loss does not depend on it. Throws `ArgumentError` for a Var that is no parameter of the tape.
  const Tensor& operator[](const Var& parameter) const&;
  /// Likewise, by the name of the entry, with its scopes, as in `gradients["layer3/weight"]`. The
  /// names are those of `Parameters`. Throws `ArgumentError` where no entry, or more than one, has
  /// it.
  const Tensor& operator[](std::string_view name) const&;
  /// A temporary returns by value, here and below.
  Tensor operator[](const Var& parameter) const&& { return (*this)[parameter]; }
  Tensor operator[](std::string_view name) const&& { return (*this)[name]; }
  /// Entries have no position: use `entries()`.
  const Tensor& operator[](std::integral auto position) const = delete;
  /// In the order in which the parameters were recorded.
  std::span<const Entry> entries() const& { return entries_; }
  std::vector<Entry> entries() const&& { return entries_; }
  auto begin() const& { return entries_.begin(); }
  auto end() const& { return entries_.end(); }
  auto begin() const&& = delete;
  auto end() const&& = delete;

  const Tensor& loss() const& { return loss_; }
  Tensor loss() const&& { return loss_; }
  /// The auxiliary outputs, in the order in which they were requested.
  std::span<const Tensor> outputs() const& { return outputs_; }
  std::vector<Tensor> outputs() const&& { return outputs_; }
  const Report& report() const& { return report_; }
  Report report() const&& { return report_; }
  /// What the means of the loss divide by, for a `GradientAccumulator`. Empty for a loss without
  /// means over counted targets.
  const LossCounts& counts() const { return counts_; }
  void set_counts(LossCounts counts) { counts_ = std::move(counts); }

  /// Gives storage of its own to each gradient that shares the storage of something else: the loss,
  /// an output, a leaf, or another value of the tape. With `y = exp(x)`, for example, the gradient
  /// of `sum(y)` and an output `y` are one array. Call it before you change gradients in place, as
  /// `clip_by_norm` does. Gradients that are equal may still share storage with each other.
  void keep_apart() const;

 private:
  friend class Runner;

  Tensor loss_;
  // Only `keep_apart` changes them in a constant object.
  mutable std::vector<Entry> entries_;
  Report report_;
  std::vector<Tensor> outputs_;
  LossCounts counts_;
  std::vector<const std::byte*> leaves_;  // of a Runner
};

/// The gradients of a scalar loss with respect to all parameters of its tape, exact and within the
/// memory budget.
///
/// A lazy tape, which is the default, has not computed anything yet, so the budget covers forward
/// and backward together. An eager tape has; there the budget applies from this call on, and
/// without a budget the values already present stay. Without a budget, that of the tape's evaluator
/// applies, as in `lazy({.memory_budget = 256_MiB})`.
///
/// Auxiliary outputs come from the same run. They and the loss are present afterwards, so asking
/// for them computes nothing, until a run with a budget forces them out.
///
/// Adjoint nodes are removed from the tape again. Throws `ShapeError` unless the loss has one
/// element, `DTypeError` unless the loss and all parameters are floating. Throws `ArgumentError`
/// for a tape without parameters, and for an evaluator that has no engine. Throws `BudgetError`
/// before any work when the budget is too small; it names the smallest budget that is enough.
Gradients backward(const LossAndOutputs& values, const RunOptions& options = {},
                   Where where = Where::current());
/// Likewise, as in `backward(loss, {logits, state}, {.memory_budget = 256_MiB})`.
Gradients backward(const Var& loss, const Outputs& outputs, const RunOptions& options = {},
                   Where where = Where::current());

/// Plans `backward` without running anything. Takes as long as the whole planner, where `backward`
/// may begin with a fast plan (see `RunOptions::planner`). After this, `backward` with these
/// options follows this plan. Throws as `backward`.
Plan plan_backward(const LossAndOutputs& values, const RunOptions& options = {},
                   Where where = Where::current());

/// Predicts memory and time of `backward` with the given rates, without running anything. Throws as
/// `backward`.
Forecast forecast_backward(const LossAndOutputs& values, const RunOptions& options = {},
                           const Rates& rates = {}, Where where = Where::current());

/// Writes the graph that `backward` with these options would plan to a file for `palimpsest-plan`
/// (see checkpoint/planning_files.h). The graph is that of a tape that has computed nothing. If no
/// plan fits the budget, it is that of a run without a budget. `backward` follows schedules made
/// for this graph, by `given`. The default of one thread makes the file equal on every machine.
/// Throws `FileError`, and `ShapeError` unless the loss has one element.
void write_graph(const LossAndOutputs& values, const std::string& path,
                 const RunOptions& options = {.threads = 1}, Where where = Where::current());

/// Draws the loss and its gradients, coloured by what `backward` does to each node (see
/// checkpoint/dot.h). Nodes of a group that runs twice count as recomputed. A white node does not
/// run, because another one replaces it. Throws as `plan_backward`.
std::ostream& write_dot(std::ostream& stream, const LossAndOutputs& values,
                        const RunOptions& options = {}, Where where = Where::current());

/// Writes what each pass of compilation does for `backward`: what it removes, fuses and plans, with
/// the source lines that recorded it. Runs nothing. Throws as `plan_backward`.
///
/// The environment variable `PALIMPSEST_DUMP` names a level. It makes a process write this for
/// every program that it compiles: to stderr, or to the end of the file that `PALIMPSEST_DUMP_FILE`
/// names.
std::ostream& write_compilation(std::ostream& stream, const LossAndOutputs& values,
                                const RunOptions& options = {}, DumpLevel level = DumpLevel::passes,
                                Where where = Where::current());

/// Computes several values of one tape in one planned run. They are present afterwards, until a run
/// with a budget forces them out. Without a budget, other present values stay. Throws
/// `ArgumentError` without values, and `BudgetError` as `backward`.
Report evaluate(std::span<const Var> values, const RunOptions& options = {},
                Where where = Where::current());
/// Likewise, of one value, such as a product with a Hessian.
Report evaluate(const Var& value, const RunOptions& options = {}, Where where = Where::current());

/// Predicts memory and time of `evaluate` with the given rates, without running anything.
Forecast forecast_values(std::span<const Var> values, const RunOptions& options = {},
                         const Rates& rates = {}, Where where = Where::current());

}  // namespace palimpsest
