#pragma once

#include <string_view>

#include "autodiff/composition.h"

namespace palimpsest {

/// The nodes that a function records, extracted into a program that can be recorded again with
/// other inputs. Operations and attributes are copied, including random streams, so every replay
/// draws the same numbers. Immutable; copies share the program.
class Trace {
 public:
  /// Calls `f` once with placeholders for `inputs` and removes the nodes it recorded from the tape
  /// again. Nodes that the results do not need are discarded. `Var`s that `f` recorded become
  /// invalid. `f` may ask for values; the tape's evaluator computes them. The evaluator may rewrite
  /// the program (see `Evaluator::inner`). Throws `ArgumentError` when `f` returns nothing or
  /// records a parameter. Errors name `operation`, the function that the user called.
  Trace(const Composition& f, std::span<const Var> inputs, Where where = Where::current(),
        std::string_view operation = "trace");

  /// Outside values that `f` used without receiving them as inputs, each once.
  std::span<const Var> captured() const { return captured_; }
  /// The nodes. The first values are leaves without a buffer that represent the arguments: the
  /// inputs, then the captured values.
  const Tape& program() const { return *program_; }
  std::uint32_t argument_count() const { return arguments_; }
  /// The results of `f` as values of the program. They may repeat, and may be arguments.
  std::span<const ValueId> outputs() const { return outputs_; }

  /// Records the program on the tape of `arguments`: one for each input, then one for each captured
  /// value, each of the original type. Returns the outputs. Throws `ArgumentError`, `ShapeError`.
  std::vector<Var> replay(std::span<const Var> arguments, Where where = Where::current()) const;

  /// The same program for arguments of these dtypes, which hold all numbers of theirs in fewer bits
  /// than it was recorded with. An output that only widens a narrower value becomes that value.
  Trace narrowed(std::span<const DType> arguments) const;

  /// Records the nodes of `program` on the tape `to`, with `values` in place of the leaves
  /// `arguments`. Returns the copies of `outputs`.
  static std::vector<Var> copy(const Tape& program, Tape& to, std::span<const ValueId> arguments,
                               std::span<const Var> values, std::span<const ValueId> outputs);

 private:
  class Copier;

  Trace() = default;

  std::shared_ptr<const Tape> program_;
  std::vector<Var> captured_;
  std::vector<ValueId> outputs_;
  std::uint32_t arguments_ = 0;
};

}  // namespace palimpsest
