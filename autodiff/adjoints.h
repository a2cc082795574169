#pragma once

#include <unordered_map>
#include <vector>

#include "autodiff/var.h"

namespace palimpsest {

/// The adjoints of the values in [begin, end), summed up while nodes are walked downwards. What is
/// done better together is put together before it is added:
///
/// - slices, which are zero elsewhere: a value that is read slice by slice takes as much work as it
///   has elements;
/// - products of few rows: what a loop multiplies by the same matrix at every step is added to the
///   matrix's adjoint by one product for many steps.
///
/// It is added at the latest where the walk comes to the node that read the value first, after
/// which nothing more comes: gradients are complete one after the other, not all at the end.
class Adjoints {
 public:
  Adjoints(Tape& tape, ValueId begin, ValueId end);

  bool reached(ValueId value) const { return inside(value) && reached_[value - begin_]; }
  void mark_reached(ValueId value) { reached_[value - begin_] = true; }
  /// Told of all that a node reads, from the first node to the last.
  void note_reader(NodeId node, std::span<const ValueId> inputs);
  /// To be called when the walk is done with a node.
  void leave(NodeId node);

  /// The sum of what was added, recorded; an undefined Var when nothing was.
  Var sum(ValueId value);
  void add(ValueId value, const Var& contribution);
  /// Adds aᵀ·b of matrices a (k, m) and b (k, n).
  void add_product(ValueId value, const Var& a, const Var& b);

 private:
  /// Products that have not been added yet.
  struct Products {
    std::vector<Var> a;
    std::vector<Var> b;
    std::int64_t rows = 0;
    Where where;  ///< of the first
  };

  bool inside(ValueId value) const {
    return value >= begin_ && value - begin_ < static_cast<ValueId>(reached_.size());
  }
  void add_whole(ValueId value, const Var& contribution);
  void add_together(ValueId value, const Products& products);

  Tape& tape_;
  ValueId begin_;
  std::vector<bool> reached_;
  std::vector<NodeId> first_readers_;  // by value
  std::vector<ValueId> sums_;
  std::unordered_map<ValueId, std::vector<Var>> slices_;  // by value, not added yet
  std::unordered_map<ValueId, Products> products_;        // by value
};

}  // namespace palimpsest
