#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "autodiff/operations/strided.h"
#include "autodiff/tape.h"
#include "strategy/compile/fusion/epilogues.h"
#include "strategy/compile/fusion/gemm_accumulations.h"

namespace palimpsest {

/// A range of elements [begin, end) of an elementwise node, and where it reads them.
struct ReadPart {
  std::int64_t begin;
  std::int64_t end;
  ValueId value;  ///< `none`: the constant `number`
  Gather from;    ///< access map: from the range's elements to the value's
  double number = 0;
};

/// The elements of a reduction: `elements` of them become `columns` results (see `FoldKernel`).
struct FoldShape {
  std::int64_t elements = 0;  ///< 0 for nodes that do not reduce
  std::int64_t columns = 0;
  std::int64_t segment = 0;  ///< elements

  bool operator==(const FoldShape&) const = default;
  /// True if reductions of both shapes can run in one group.
  bool fits(const FoldShape& other) const {
    return elements == 0 || other.elements == 0 || *this == other;
  }
};

/// How an elementwise node reads one of its inputs.
struct AccessMap {
  std::vector<ReadPart> parts;
  bool in_order;  ///< a single part, and element i of the node reads element i
  /// The parts are those of the first so many elements. As many elements further on, the node reads
  /// as many elements further on. 0: the parts are those of all elements.
  std::int64_t period = 0;

  ValueId value() const { return parts.size() == 1 ? parts[0].value : none; }
};

/// A value that a node reads, from memory or from its own group. `in_order`: element i of the value
/// goes into element i of the node.
struct Link {
  ValueId value;
  bool in_order;
};

/// Fusion through data movement: elementwise nodes whose result another node reads through a roll.
/// They run at the reader, on elements in the reader's order, so the rolled array is not in memory.
/// Nodes that others read too are duplicated.
struct MovedProducers {
  std::vector<NodeId> nodes;  ///< in order; the last one makes the array that is rolled
  std::vector<ValueId> read;  ///< from memory
};

/// The access maps of elementwise nodes, looking through nodes that only move elements. A data
/// movement node need not run, unless others read it too. The same holds for a product that is
/// fused into a sum, a node with a fused epilogue, and nodes that are moved to their reader.
class AccessMaps {
 public:
  /// `needed` marks the nodes that have to run, `wanted` the targets, and `present` the values that
  /// are already there. Looking through a slice keeps the whole array in memory until the last
  /// reader; with `stores_slices` each slice is an array of its own, and no nodes are moved.
  AccessMaps(const Tape& tape, std::vector<bool> needed, const std::vector<bool>& wanted,
             std::vector<bool> present, bool stores_slices = false);

  /// True when the node has to run and can run on any range of its elements.
  bool is_pointwise(NodeId node) const { return pointwise_[node]; }
  /// True for a pointwise node with inputs: it may run in a group.
  bool may_be_in_group(NodeId node) const {
    return pointwise_[node] && !tape_.inputs(node).empty();
  }
  /// True when the node has to run and reduces its input, in order, as part of a group.
  bool is_fold(NodeId node) const { return fold_[node]; }
  /// The shape of a node that `is_fold`. Other nodes have a shape without elements.
  FoldShape fold_shape(NodeId node) const;
  /// True for a constant that a pointwise node fills in, the same for every element.
  bool is_number(ValueId value) const;
  /// The GEMM accumulate that makes the node; null for other nodes. The node then reads the
  /// product's inputs and the addend.
  const GemmAccumulation* accumulation(NodeId node) const {
    return accumulation_[node] == none ? nullptr : &accumulations_[accumulation_[node]];
  }
  /// The epilogue fusion that makes the node; null for other nodes.
  const Epilogue* epilogue(NodeId node) const {
    return epilogue_[node] == none ? nullptr : &epilogues_[epilogue_[node]];
  }
  /// The nodes that are moved to the reader of `input`; null where the input is read from
  /// memory.
  const MovedProducers* moved_producers(ValueId input) const {
    const std::uint32_t found = moved_of_[tape_.producer(input)];
    return found == none ? nullptr : &moved_[found];
  }
  bool is_needed(NodeId node) const { return needed_[node]; }
  /// True if nodes read parts of larger arrays through slices.
  bool looks_through_slices() const { return looks_through_slices_; }
  /// The values that a needed node reads, without constants that a pointwise node makes itself.
  std::span<const Link> links(NodeId node) const {
    return std::span(links_).subspan(first_link_[node], first_link_[node + 1] - first_link_[node]);
  }

  /// How a pointwise node reads input `i`.
  AccessMap of(NodeId node, std::size_t i) const;

 private:
  class Moving;

  void accumulate();
  void finish();
  void find_moved();
  void read_from_memory(ValueId value);
  void link(NodeId node);
  bool is_slice(NodeId node) const;
  bool only_moves(NodeId node) const;
  bool is_transparent(ValueId value) const;
  ValueId behind_views(ValueId value) const;
  ReadPart part(std::int64_t begin, std::int64_t end, ValueId value, std::int64_t first = 0) const;

  const Tape& tape_;
  const bool stores_slices_;
  bool looks_through_slices_ = false;
  std::vector<bool> needed_;
  std::vector<bool> present_;
  std::vector<bool> pointwise_;
  std::vector<bool> fold_;
  std::vector<GemmAccumulation> accumulations_;
  std::vector<std::uint32_t> accumulation_;  // by node
  std::vector<Epilogue> epilogues_;
  std::vector<std::uint32_t> epilogue_;  // by node
  std::vector<MovedProducers> moved_;
  std::vector<std::uint32_t> moved_of_;  // by the node that rolls them
  std::vector<Link> links_;
  std::vector<std::uint32_t> first_link_;  // by node
  std::vector<bool> read_whole_;  // by value: a target, or read by a node that is not elementwise
  std::vector<std::uint8_t> reads_;  // by value: how often it is read; at most 2
};

}  // namespace palimpsest
