#pragma once

#include "autodiff/composition.h"

namespace palimpsest {

/// The nodes a function records, cut off their tape into a program of their own that can be
/// recorded again with other inputs. Operations and attributes are copied, random streams included,
/// so every replay draws the same numbers. Immutable; copies share the program.
class Trace {
 public:
  /// Calls `f` once with stand-ins for `inputs` and takes what it recorded off the tape again;
  /// nodes that the returned values do not need are forgotten. `Var`s that `f` recorded must not be
  /// used afterwards. Values may be asked for in `f`; the tape's evaluator computes them. Throws
  /// `ArgumentError` when `f` returns nothing or records a parameter. The program is the one that
  /// the evaluator makes of it.
  Trace(const Composition& f, std::span<const Var> inputs, Where where = Where::current());

  /// Values from outside that `f` used without being given them, each once.
  std::span<const Var> captured() const { return captured_; }
  /// The nodes. Its first values are leaves without a buffer that stand for the arguments: the
  /// inputs, then what was captured.
  const Tape& program() const { return *program_; }
  std::uint32_t argument_count() const { return arguments_; }
  /// What `f` returned, on the program; may repeat, and may be arguments.
  std::span<const ValueId> outputs() const { return outputs_; }

  /// Records the program on the tape of `arguments`: one for each input, then one for each value
  /// captured, of the types they had. Returns the outputs. Throws `ArgumentError`, `ShapeError`.
  std::vector<Var> replay(std::span<const Var> arguments, Where where = Where::current()) const;

  /// Records the nodes of `program` on the tape `to`, where `values` take the place of its leaves
  /// `arguments`. Returns what `outputs` are there.
  static std::vector<Var> copy(const Tape& program, Tape& to, std::span<const ValueId> arguments,
                               std::span<const Var> values, std::span<const ValueId> outputs);

 private:
  class Copier;

  std::shared_ptr<const Tape> program_;
  std::vector<Var> captured_;
  std::vector<ValueId> outputs_;
  std::uint32_t arguments_ = 0;
};

}  // namespace palimpsest
