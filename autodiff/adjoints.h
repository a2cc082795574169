#pragma once

#include <unordered_map>
#include <vector>

#include "autodiff/var.h"

namespace palimpsest {

/// Accumulates the adjoints of the values in [begin, end) while nodes are visited from last to
/// first. Two kinds of contributions are merged before they are added:
///
/// - Slices, which are zero elsewhere. A value that is read slice by slice then costs work linear
///   in its elements.
/// - Products with few rows. If a loop multiplies by one matrix at every step, the matrix's adjoint
///   gets one product for many steps.
///
/// Contributions that are scattered among zeros are added in place of the others' sum.
///
/// They are added no later than at the first node that reads the value, since nothing is added
/// after that. Gradients are thus completed one by one, not all at the end.
class Adjoints {
 public:
  Adjoints(Tape& tape, ValueId begin, ValueId end);

  bool reached(ValueId value) const { return inside(value) && reached_[value - begin_]; }
  void mark_reached(ValueId value) { reached_[value - begin_] = true; }
  /// Registers the inputs of a node. Call it for all nodes, from the first to the last.
  void note_reader(NodeId node, std::span<const ValueId> inputs);
  /// Call this when the walk has finished with a node.
  void leave(NodeId node);

  /// The recorded sum of all contributions; an undefined `Var` if there were none.
  Var sum(ValueId value);
  void add(ValueId value, const Var& contribution);
  /// Adds aᵀ·b of matrices a (k, m) and b (k, n).
  void add_product(ValueId value, const Var& a, const Var& b);

 private:
  /// Products that were not added yet.
  struct Products {
    std::vector<Var> a;
    std::vector<Var> b;
    std::int64_t rows = 0;
    NodeId first = none;  ///< a node of the first product
  };

  bool inside(ValueId value) const {
    return value >= begin_ && value - begin_ < static_cast<ValueId>(reached_.size());
  }
  void add_whole(ValueId value, const Var& contribution);
  void add_together(ValueId value, const Products& products);

  Tape& tape_;
  ValueId begin_;
  /// The first value that this differentiation recorded. Others may be differentiated by, so their
  /// nodes are not looked through.
  ValueId first_own_;
  std::vector<bool> reached_;
  std::vector<NodeId> first_readers_;  // by value
  std::vector<ValueId> sums_;
  std::unordered_map<ValueId, std::vector<Var>> slices_;  // by value, not added yet
  std::unordered_map<ValueId, Products> products_;        // by value
};

}  // namespace palimpsest
