#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "strategy/compile/fusion/needs.h"

namespace palimpsest {

/// What of a tape need not be computed as it was recorded, with the same bits:
///
/// - a node that does what one before it does, with the same inputs and equal attributes: the
///   values of that one stand for its values;
/// - a node whose numbers make its output one of its inputs, as x·1 and x − 0: that input stands
///   for it;
/// - a node that makes one number in every place because its inputs are such numbers: it is a
///   `full` of that number.
///
/// Random operations are not merged. Nor is what is computed from an `identity` with what is
/// computed from its input, so that what a checkpoint computes again is computed again. The values
/// of the forward part stand for those of the backward part only where they are held until then
/// anyway. Signalling NaNs may stay signalling.
class Simplification {
 public:
  /// Everything as it was recorded.
  Simplification() = default;
  /// Of what is needed of a tape whose adjoints begin at `backward_begins`. With `before`, that of
  /// a tape of the same structure, what was found there and still holds.
  Simplification(const Tape& tape, const Needs& needs, NodeId backward_begins,
                 const Simplification* before = nullptr);

  /// True when all of it holds for a tape of the same structure, whose attributes may be others.
  /// Takes as long as it says something that depends on attributes.
  bool holds(const Tape& tape) const;

  /// Bytes that this takes itself, about.
  Bytes bytes() const;

  bool empty() const { return merged_ == 0 && literals_.empty(); }
  /// Nodes that others stand for.
  std::uint32_t merged() const { return merged_; }
  /// True when some value may be held for longer than what was recorded holds its values.
  bool holds_longer() const { return holds_longer_; }
  /// Nodes that are numbers, in order, and what `full` makes them of.
  using Literals = std::vector<std::pair<NodeId, Attributes>>;
  const Literals& literals() const { return literals_; }
  /// The value that is computed in place of this one, which may be itself.
  ValueId stands_for(ValueId value) const { return empty() ? value : stands_for_[value]; }

 private:
  class Finder;

  std::vector<ValueId> stands_for_;             // by value
  std::vector<ValueId> class_;                  // by value: the first that has the same bits
  std::vector<std::optional<double>> numbers_;  // by node: in every place of its output
  Literals literals_;
  std::uint32_t merged_ = 0;
  bool holds_longer_ = false;
  std::vector<std::pair<NodeId, NodeId>> equal_;         // their attributes are
  std::vector<std::pair<NodeId, Attributes>> constant_;  // theirs are these
};

/// A tape as it is simplified, nodes and values numbered as before; those that are needed no more
/// are there all the same. Null when nothing is simplified.
std::unique_ptr<Tape> simplified(const Tape& tape, const Simplification& simplification);

}  // namespace palimpsest
