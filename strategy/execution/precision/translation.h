#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "autodiff/tape.h"
#include "autodiff/var.h"
#include "strategy/base/precision.h"

namespace palimpsest {

/// What was recorded on one tape, recorded again on another in some precision: the same operations,
/// attributes, lines, scopes and leaves, whose storage is shared, and casts where dtypes differ, of
/// each value one to each dtype.
class Translation {
 public:
  Translation(const Precision& precision, std::shared_ptr<Evaluator> evaluator);

  /// Where it is recorded.
  Tape& tape() { return *tape_; }
  /// The same; it may outlive this.
  const std::shared_ptr<Tape>& shared_tape() const { return tape_; }

  /// Records whatever was recorded on `from`, always the same tape until `clear`, since the last
  /// call. Throws what the evaluator throws; what was recorded until then stays.
  void follow(const Tape& from);
  /// Gives nodes the names that those of `from` were given after they were recorded.
  void follow_names(const Tape& from);
  /// The value in place of a value of `from`, in whatever dtype it is computed.
  Var operator[](ValueId value);
  /// The same in `dtype`.
  Var in_dtype(ValueId value, DType dtype);
  void clear();

  /// While it lives, what `follow` records is taken off again when it goes.
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
    std::optional<Tape::Temporary> temporary_;
  };

 private:
  /// A value in the dtype it is computed in, and in each floating dtype it is read in.
  struct Forms {
    ValueId value;
    std::array<ValueId, 4> in{none, none, none, none};
  };

  void record(const Tape& from, NodeId node);
  Var leaf(const Tape& from, NodeId node);
  Var operation(const Tape& from, NodeId node);
  bool is_narrow(ValueId value) const;
  DType dtype_made(const Tape& from, NodeId node) const;
  DType dtype_read(const Tape& from, NodeId node, std::size_t i, DType made) const;
  Var cast(ValueId value, DType dtype, const Where& where);

  DType wide_;
  DType narrow_;
  std::shared_ptr<Tape> tape_;
  std::vector<NodeId> nodes_;  // in place of each node of the other tape
  std::vector<Forms> values_;  // in place of each value
};

/// A program in some precision, on a tape of its own; its `values` have the dtypes they had.
InnerProgram in_precision(const Precision& precision, const Tape& program,
                          std::span<const ValueId> values);
/// The same for loops and checkpoints. The program keeps the recorded one, which loops in it know.
InnerRewrite rewrite_in(const Precision& precision);
/// Appends a copy of the nodes of a tape in another precision; leaves are shared. Returns what
/// stands there for `values`, of the dtypes they have.
std::vector<Var> record_again(const Precision& precision, Tape& tape, std::span<const Var> values);

}  // namespace palimpsest
