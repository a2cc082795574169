#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "autodiff/operations/strided.h"
#include "autodiff/tape.h"
#include "strategy/compile/fusion/accumulations.h"
#include "strategy/compile/fusion/finishes.h"

namespace palimpsest {

/// A stretch of what an elementwise node reads: its elements [begin, end).
struct ReadPart {
  std::int64_t begin;
  std::int64_t end;
  ValueId value;  ///< `none`: `number` in every place
  Gather from;    ///< of the stretch's elements among the value's
  double number = 0;
};

/// What an elementwise node reads as one of its inputs.
struct Reading {
  std::vector<ReadPart> parts;
  bool in_order;  ///< one part, of which element i of the node reads element i

  ValueId value() const { return parts.size() == 1 ? parts[0].value : none; }
};

/// One value that a node reads from memory or from its own group, and whether its element i goes
/// into element i of the node.
struct Link {
  ValueId value;
  bool in_order;
};

/// Elementwise nodes that make what one other reads rolled. They run where that does, on elements
/// in its order, so that it is not in memory for that; those that others read too run there as
/// well.
struct Moved {
  std::vector<NodeId> nodes;  ///< in order; the last one makes what is rolled
  std::vector<ValueId> read;  ///< from memory
};

/// Finds out what elementwise nodes read when they look through nodes that only move elements:
/// such a node need not run, unless others read it too. Nor need a product that a sum makes itself,
/// a node that carries out another on what it makes, or what is made where it is read.
class Readings {
 public:
  /// `needed` marks the nodes that have to run, `wanted` the values that must be there afterwards
  /// and `present` those that are there already.
  Readings(const Tape& tape, std::vector<bool> needed, const std::vector<bool>& wanted,
           std::vector<bool> present);

  /// True when the node has to run and can run on a stretch of its elements.
  bool is_pointwise(NodeId node) const { return pointwise_[node]; }
  /// True when the node has to run and folds rows of what it reads: as part of a group, in order.
  bool is_fold(NodeId node) const { return fold_[node]; }
  /// True for a node that makes the same number for every element of a pointwise node.
  bool is_number(ValueId value) const;
  /// How the node is made with a product, whose inputs and addend are then what it reads; null for
  /// other nodes.
  const Accumulation* accumulation(NodeId node) const {
    return accumulation_[node] == none ? nullptr : &accumulations_[accumulation_[node]];
  }
  /// The same for a node that another one carries out on what it makes.
  const Finishing* finishing(NodeId node) const {
    return finishing_[node] == none ? nullptr : &finishings_[finishing_[node]];
  }
  /// What makes what a node reads as an input, as it is read; null where that lies in memory.
  const Moved* moved(ValueId input) const {
    const std::uint32_t found = moved_of_[tape_.producer(input)];
    return found == none ? nullptr : &moved_[found];
  }
  bool is_needed(NodeId node) const { return needed_[node]; }
  /// What a needed node reads; numbers are left out where a pointwise node makes them itself.
  std::span<const Link> links(NodeId node) const {
    return std::span(links_).subspan(first_link_[node], first_link_[node + 1] - first_link_[node]);
  }

  /// Input `i` of a pointwise node.
  Reading of(NodeId node, std::size_t i) const;

 private:
  class Moving;

  void accumulate();
  void finish();
  void find_moved();
  void read_from_memory(ValueId value);
  void link(NodeId node);
  bool only_moves(NodeId node) const;
  bool is_transparent(ValueId value) const;
  ValueId behind_views(ValueId value) const;
  ReadPart part(std::int64_t begin, std::int64_t end, ValueId value, std::int64_t first = 0) const;

  const Tape& tape_;
  std::vector<bool> needed_;
  std::vector<bool> present_;
  std::vector<bool> pointwise_;
  std::vector<bool> fold_;
  std::vector<Accumulation> accumulations_;
  std::vector<std::uint32_t> accumulation_;  // by node
  std::vector<Finishing> finishings_;
  std::vector<std::uint32_t> finishing_;  // by node
  std::vector<Moved> moved_;
  std::vector<std::uint32_t> moved_of_;  // by node that rolls it
  std::vector<Link> links_;
  std::vector<std::uint32_t> first_link_;  // by node
  std::vector<bool> read_whole_;  // by value: wanted, or read by a node that is not elementwise
};

}  // namespace palimpsest
