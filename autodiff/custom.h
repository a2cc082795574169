#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autodiff/composition.h"
#include "autodiff/export.h"

namespace palimpsest PALIMPSEST_EXPORT {

class RunControl;
class RunScope;
class Translation;

/// The arguments of a custom operation's forward function. The tensors refer to storage that the
/// run owns: do not keep copies of them.
struct CustomCall {
  std::span<const Tensor> inputs;   ///< read-only
  std::span<const Tensor> outputs;  ///< to fill
  /// As many bytes as `CustomDefinition::workspace` asked for, aligned to 64.
  std::span<std::byte> workspace;
  int threads = 1;  ///< most threads that run at once in the caller's arena
  /// The run of a program that is recorded once and run many times. An operation that draws random
  /// numbers uses `in_round` of its stream.
  Round round = {};
  /// `control->check()` throws `StoppedError` if the run is to stop (`RunOptions::stop`). Long
  /// operations call it now and then. Null for a run that cannot be stopped.
  RunControl* control = nullptr;
  RunScope* scope = nullptr;  ///< of the run, for operations of the library; null outside of one
};

/// Definition of a custom operation. Its functions may be called from several threads at once, and
/// again each time a plan recomputes a node. They must depend on their arguments only.
///
/// `vjp` may record on the tape and ask for values. While a `Program` is recorded, it cannot ask
/// for values that depend on a leaf. In the body of a loop that a run records step by step, it may
/// ask only for values that are computed. Both throw `TapeError`. `forward`, `cost` and `workspace`
/// may use other tapes with other evaluators. They get a `TapeError` where they change the tape of
/// the node.
struct CustomDefinition {
  std::string name;  ///< for messages, reports and graph drawings
  /// Computes the output types from the input types. It may throw any exception for inputs that do
  /// not fit. Null: one output with the type of input 0.
  std::function<std::vector<ValueType>(std::span<const ValueType>)> types = nullptr;
  /// Fills the outputs. Required.
  std::function<void(const CustomCall&)> forward = nullptr;
  /// Sets the adjoint of every input for which `Pullback::wants` is true, or calls
  /// `pull_back_through`. If it is null or leaves such an input unset, differentiation throws
  /// `ArgumentError` naming the operation and the argument.
  std::function<void(const Pullback&)> vjp = nullptr;
  /// Null: one operation per output element, and each operand is moved once. What `cost` and
  /// `workspace` throw becomes an `ArgumentError` of the runs that need the node.
  std::function<Cost(const NodeView&)> cost = nullptr;
  /// Bytes of scratch that the forward function needs with up to `threads` threads. Null: none.
  std::function<Bytes(const NodeView&, int threads)> workspace = nullptr;
  /// `widened`: 16-bit operands are passed to `forward` as f32.
  HalfSupport half = HalfSupport::widened;
  /// Records the operation in a mixed precision, in which some floating inputs may have fewer bits
  /// than those that it was recorded with. Returns its outputs, which may have fewer bits too.
  /// Null: inputs are converted to the dtypes that they were recorded with.
  std::function<std::vector<Var>(std::span<const Var> inputs, Where where)> narrow = nullptr;
  /// True when `forward` parallelizes its own work. Otherwise plans for several threads reserve up
  /// to 1 MiB of memory to run it concurrently with other nodes.
  bool shares_threads = false;
};

/// A custom operation, recorded, planned and run like the built-in ones. It is an immutable handle:
/// copies are cheap, and tapes on several threads may share one. Nodes keep the parts they need
/// alive.
class CustomOperation {
 public:
  /// Throws `ArgumentError` when the name or the forward function is missing.
  explicit CustomOperation(CustomDefinition definition, Where where = Where::current());

  /// Records a node and returns its first output; call `output(i)` on it for output i. Throws
  /// `ArgumentError` without inputs and when `types` returns nothing, and any exception of `types`.
  Var operator()(std::span<const Var> inputs, Where where = Where::current()) const;
  Var operator()(std::initializer_list<Var> inputs, Where where = Where::current()) const;
  /// Records on the given tape, for operations that may have no inputs. These must define `types`.
  Var operator()(Tape& tape, std::span<const Var> inputs, Where where = Where::current()) const;

 private:
  friend class Translation;
  struct State;

  /// The definition of the operation of a node. Null if it is none of a user.
  static const CustomDefinition* definition(const NodeView& node);

  std::shared_ptr<const State> state_;
};

}  // namespace palimpsest
