#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "strategy/compile/fusion/readings.h"

namespace palimpsest {

/// What runs as one: a group of elementwise nodes, and of reductions of what they make, or one
/// node. Nodes are in the order of the tape.
struct Unit {
  std::vector<NodeId> own;
  std::vector<NodeId> clones = {};  ///< own ones of other units, which this one runs for itself

  bool makes(NodeId node) const;
  /// Own nodes and clones.
  std::vector<NodeId> nodes() const;
};

/// Units in an order in which they may run.
using Units = std::vector<Unit>;

/// How what has to run of a tape is cut into units that run as one: groups of elementwise nodes
/// over equally many elements, with reductions of their values to results of equally many, and
/// every other node alone.
///
/// Every unit has a place in an order: what it reads comes from units before it. A node joins the
/// units of what it reads where there is a place behind all that both read and before all that read
/// the unit.
class Groups {
 public:
  /// Nodes before `boundary` do not share a unit with others.
  Groups(const Tape& tape, const Readings& readings, NodeId boundary);

  Units in_order() const;

 private:
  using UnitId = std::uint32_t;
  struct Growing {
    std::vector<NodeId> members;
    std::uint32_t place;
    std::uint32_t first_reader = none;  // no unit with a lesser place reads this one
    std::int64_t elements = 0;          // of a pointwise unit
    std::int64_t folded = 0;            // of them, in one result of its reductions
  };

  std::int64_t elements(NodeId node) const;
  std::int64_t folded(NodeId node) const;
  bool add_to_others(NodeId node);
  std::vector<UnitId> candidates(NodeId node) const;
  bool join(std::span<const UnitId> units, NodeId node);
  void settle(UnitId unit, NodeId node);

  const Tape& tape_;
  const Readings& readings_;
  NodeId boundary_;
  std::vector<Growing> units_;
  std::vector<UnitId> unit_of_;  // by node
  std::uint32_t next_place_ = 0;
};

}  // namespace palimpsest
