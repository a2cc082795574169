#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "autodiff/custom.h"
#include "autodiff/recording_guards.h"
#include "autodiff/tape.h"
#include "autodiff/var.h"
#include "strategy/base/precision.h"

namespace palimpsest {

/// A copy of a tape, recorded on another tape in another precision. It has the same operations,
/// attributes, source lines, scopes and leaves; leaves share their storage. Casts are added where
/// dtypes differ, at most one for each value and dtype.
class Translation {
 public:
  Translation(const Precision& precision, std::shared_ptr<Evaluator> evaluator);

  /// The tape with the copy.
  Tape& tape() { return *tape_; }
  /// Likewise; it may outlive the translation.
  const std::shared_ptr<Tape>& shared_tape() const { return tape_; }

  /// Records what was recorded on `from` since the last call. `from` must be the same tape until
  /// `clear`. Throws what the evaluator throws; the nodes recorded until then stay.
  void follow(const Tape& from);
  /// False for a value that was not followed yet, as while its node is recorded.
  bool knows(ValueId value) const { return value < values_.size(); }
  /// Copies the names of nodes that were named after they had been recorded.
  void follow_names(const Tape& from);
  /// The counterpart of a value of `from`, in the dtype it is computed in.
  Var operator[](ValueId value);
  /// Likewise, cast to `dtype`.
  Var in_dtype(ValueId value, DType dtype);
  void clear();

  /// Scope guard: its destructor removes what `follow` recorded since its construction.
  class [[nodiscard]] Temporary {
   public:
    explicit Temporary(Translation& translation);
    ~Temporary();
    Temporary(const Temporary&) = delete;
    Temporary& operator=(const Temporary&) = delete;

   private:
    Translation& translation_;
    std::size_t nodes_;
    std::size_t values_;
    ValueId end_;
    std::optional<TemporaryNodes> temporary_;
  };

 private:
  /// A value, and its casts by floating dtype.
  struct Forms {
    ValueId value;
    DType dtype;  ///< that it counts as: the value's own, or a wider one that readers expect
    std::array<ValueId, 4> in{none, none, none, none};
  };

  void record(const Tape& from, NodeId node);
  /// Throws `ArgumentError` unless these can stand for the outputs of a user's operation.
  void require_narrow(std::span<const Var> outputs, const Tape& from, NodeId node) const;
  /// Records a custom operation by its own function. Narrow outputs count as recorded.
  void record_narrow(const CustomDefinition& definition, const Tape& from, NodeId node);
  Var leaf(const Tape& from, NodeId node);
  Var operation(const Tape& from, NodeId node);
  bool is_narrow(ValueId value) const;
  DType dtype_made(const Tape& from, NodeId node) const;
  DType dtype_read(const Tape& from, NodeId node, std::size_t i, DType made) const;
  Var cast(ValueId value, DType dtype, const Where& where);

  DType wide_;
  DType narrow_;
  std::shared_ptr<Tape> tape_;
  std::vector<NodeId> nodes_;  // counterparts, by node of the other tape
  std::vector<Forms> values_;  // counterparts, by value
  bool is_following_ = false;
};

/// A program in some precision, on a tape of its own. Its `values` keep their dtypes.
InnerProgram in_precision(const Precision& precision, const Tape& program,
                          std::span<const ValueId> values);
/// Likewise as a function, for loops and checkpoints. The result keeps the recorded program, which
/// loops in it refer to.
InnerRewrite rewrite_in(const Precision& precision);
/// Appends a copy of the nodes of a tape, in another precision, to the same tape. Leaves are
/// shared. Returns the counterparts of `values`, in their dtypes.
std::vector<Var> record_again(const Precision& precision, Tape& tape, std::span<const Var> values);

}  // namespace palimpsest
