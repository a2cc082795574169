#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "strategy/compile/fusion/needs.h"

namespace palimpsest {

/// Computations of a tape that can be left out without changing any bit:
///
/// - Common subexpression elimination (CSE): a node with the operation, inputs and attributes of an
///   earlier node. The earlier node's values replace its values.
/// - Identities: a node whose constants make its output equal to an input, such as x·1 and x − 0.
///   That input replaces its value.
/// - Constant folding: a node whose inputs are constant arrays, so that all its elements are one
///   number. A `full` of that number replaces it.
///
/// Random operations are not merged. Values computed from an `identity` are not
/// merged with those computed from its input, so that checkpoints do recompute.
/// Values of the forward part replace those of the backward part only where they are held until
/// then anyway. Signalling NaNs may stay signalling.
class Simplification {
 public:
  /// No simplification.
  Simplification() = default;
  /// Simplifies what is needed of a tape whose adjoints begin at `backward_begins`. `before` may be
  /// the simplification of a tape of the same structure; then only its results that still hold are
  /// kept.
  Simplification(const Tape& tape, const Needs& needs, NodeId backward_begins,
                 const Simplification* before = nullptr);

  /// Whether everything holds for a tape of the same structure, which may have other attributes.
  /// O(number of attribute-dependent simplifications).
  bool holds(const Tape& tape) const;

  /// Approximate bytes of this object.
  Bytes bytes() const;

  bool empty() const { return size() == 0; }
  /// Number of nodes that are left out.
  std::size_t size() const { return common_subexpressions_ + folded_constants_.size(); }
  /// Number of nodes that others replace.
  std::uint32_t common_subexpressions() const { return common_subexpressions_; }
  /// True when some value may be held longer than in the recorded program.
  bool holds_longer() const { return holds_longer_; }
  /// The folded nodes, in order, with the `full` attributes that make their constants.
  using FoldedConstants = std::vector<std::pair<NodeId, Attributes>>;
  const FoldedConstants& folded_constants() const { return folded_constants_; }
  /// The value that is computed in place of this one, possibly itself.
  ValueId replacement(ValueId value) const { return empty() ? value : replacement_[value]; }

 private:
  class Finder;

  std::vector<ValueId> replacement_;            // by value
  std::vector<ValueId> class_;                  // by value: the first value with the same bits
  std::vector<std::optional<double>> numbers_;  // by node: the constant that fills its output
  FoldedConstants folded_constants_;
  std::uint32_t common_subexpressions_ = 0;
  bool holds_longer_ = false;
  std::vector<std::pair<NodeId, NodeId>> equal_;         // pairs whose attributes must be equal
  std::vector<std::pair<NodeId, Attributes>> constant_;  // nodes that must have these attributes
};

/// A copy of the tape after simplification, with the same numbers of nodes and values. Nodes that
/// are no longer needed are still there. Null when nothing is simplified.
std::unique_ptr<Tape> simplified(const Tape& tape, const Simplification& simplification);

}  // namespace palimpsest
