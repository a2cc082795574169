#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autodiff/composition.h"

namespace palimpsest {

/// What the forward function of a user's operation may touch while it runs. The tensors share
/// storage that is not theirs: keep none of them.
struct CustomCall {
  std::span<const Tensor> inputs;   ///< to read
  std::span<const Tensor> outputs;  ///< to fill
  /// As many bytes as `CustomDefinition::workspace` asked for, aligned to 64.
  std::span<std::byte> workspace;
  int threads = 1;  ///< most threads that run at once in the caller's arena
  /// Counts the runs of a program recorded once. An operation that draws random numbers takes
  /// `in_round` of its stream.
  std::uint32_t round = 0;
};

/// A user's operation. The functions may be called from several threads at once, and as often as a
/// plan computes a node again: they must depend on their arguments only.
struct CustomDefinition {
  std::string name;  ///< for messages, reports and pictures
  /// The types of the outputs by those of the inputs; throws what it likes for inputs that do not
  /// fit. Null: one output of the type of input 0.
  std::function<std::vector<ValueType>(std::span<const ValueType>)> types = nullptr;
  std::function<void(const CustomCall&)> forward = nullptr;
  /// Records the adjoints of the inputs that `Pullback::wants` names, or calls `pull_back_through`.
  /// Null: asking for a derivative is an error that names the operation and the argument.
  std::function<void(const Pullback&)> vjp = nullptr;
  /// Null: one operation per output element and every operand moved once.
  std::function<Cost(const NodeView&)> cost = nullptr;
  /// Bytes of scratch the forward function needs when `threads` may run. Null: none.
  std::function<Bytes(const NodeView&, int threads)> workspace = nullptr;
  /// `widened`: 16-bit operands reach `forward` as f32.
  HalfSupport half = HalfSupport::widened;
  /// True when `forward` shares its work among threads itself. Otherwise plans for several threads
  /// take memory for running it beside others, up to 1 MiB.
  bool shares_threads = false;
};

/// An operation made by the user, recorded, planned and run like those of the library. A handle to
/// something immutable: copies are cheap, and tapes on several threads may share one. Nodes keep
/// what they need of it.
class CustomOperation {
 public:
  /// Throws `ArgumentError` when the name or the forward function is missing.
  explicit CustomOperation(CustomDefinition definition);

  /// Records a node and returns its first output; `output(i)` of that is output i. Throws
  /// `ArgumentError` without inputs, and what `types` throws.
  Var operator()(std::span<const Var> inputs, Where where = Where::current()) const;
  Var operator()(std::initializer_list<Var> inputs, Where where = Where::current()) const;
  /// The same on a tape that is named, for an operation that may have no inputs.
  Var operator()(Tape& tape, std::span<const Var> inputs, Where where = Where::current()) const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

}  // namespace palimpsest
