#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "strategy/compile/fusion/access_maps.h"

namespace palimpsest {

/// Nodes that run as one: either a group of elementwise nodes and reductions of their results, or a
/// single node. Nodes are in the order of the tape.
struct Unit {
  std::vector<NodeId> own;
  std::vector<NodeId> duplicates =
      {};  ///< nodes of other units that this unit recomputes for itself

  bool makes(NodeId node) const;
  /// Own nodes and duplicates, together.
  std::vector<NodeId> nodes() const;
};

/// Units in an execution order.
using Units = std::vector<Unit>;

/// Most nodes of a unit to which others are added: more would not fit the cache tile by tile.
constexpr std::size_t most_together = 32;

/// The shape of a unit's reductions.
FoldShape folded(const Unit& unit, const AccessMaps& access_maps);

/// Partitions the needed nodes of a tape into units. A group contains elementwise nodes over an
/// equal number of elements, and reductions of their values with results of equal size. Every other
/// node is a unit of its own. So are reductions of several columns (`join_column_reductions`).
///
/// Units have places in an order: a unit reads only from units before it. A node joins the units
/// whose values it reads, if a place exists after everything that they read together and before all
/// readers of the unit.
class Groups {
 public:
  /// Nodes before `boundary` do not share a unit with later ones.
  Groups(const Tape& tape, const AccessMaps& access_maps, NodeId boundary);

  Units in_order() const;

 private:
  using UnitId = std::uint32_t;
  struct Growing {
    std::vector<NodeId> members;
    std::uint32_t place;
    std::uint32_t first_reader = none;  // units at smaller places do not read this one
    std::int64_t elements = 0;          // of an elementwise group
    FoldShape folded = {};              // of its reductions
  };

  std::int64_t elements(NodeId node) const;
  bool add_to_others(NodeId node);
  std::vector<UnitId> candidates(NodeId node) const;
  std::size_t most_members_with(NodeId node) const;
  bool join(UnitId unit, NodeId node);
  bool merge(std::span<const UnitId> units, NodeId node);
  void settle(UnitId unit, NodeId node);
  void note_reads(UnitId unit, NodeId node);

  const Tape& tape_;
  const AccessMaps& access_maps_;
  NodeId boundary_;
  std::vector<Growing> units_;
  std::vector<UnitId> unit_of_;  // by node
  std::uint32_t next_place_ = 0;
};

}  // namespace palimpsest
