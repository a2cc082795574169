#pragma once

#include "strategy/compile/fusion/groups.h"

namespace palimpsest {

/// Splits groups that need more memory than their nodes do one by one.
///
/// Members of a group run together. Some of them wait for others, although they could free memory
/// at once. An example is the sum of many adjoints: all parts stay in memory until the last one
/// arrives. Others run long before their result is read. Where that raises the peak, such members
/// become groups of their own, which run as soon as their inputs are there, or just before their
/// result is read.
class GroupSplitting {
 public:
  /// `kept` marks values that are never freed. Nodes before `boundary` are of the forward part.
  GroupSplitting(const Tape& tape, const AccessMaps& access_maps, NodeId boundary,
                 const std::vector<bool>& kept, const std::vector<bool>& present, Units& units);

  /// True if a split could save memory somewhere.
  bool may_split() const;
  /// Splits groups so that less memory is held at `peak`, the position of a unit. If none is the
  /// reason, splits those at the positions `over`, in ascending order, into their nodes. Returns
  /// false if there are none.
  bool lower(std::size_t peak, std::span<const std::size_t> over);
  /// Splits all groups into their nodes, in the order of the tape. Nothing is computed twice then.
  /// A reduction runs with what it reduces or, with `apart`, by itself if it reads a whole value.
  void split_all(bool apart);

 private:
  /// Own nodes of a unit, and the position of a unit after which they may run.
  struct Part {
    std::size_t position;
    std::vector<NodeId> own;
  };
  /// Positions of units that read a value.
  struct Readers {
    std::uint32_t first = none;
    std::uint32_t last = none;
    std::uint32_t before_last = none;
  };
  using Parts = std::vector<Part>;

  void note_positions();
  void note(std::uint32_t at);
  Parts by_inputs(std::uint32_t at) const;
  Parts by_readers(std::uint32_t at) const;
  Parts by_nodes(std::uint32_t at, bool apart = false) const;
  Bytes held(std::uint32_t at, std::size_t peak, std::span<const NodeId> before) const;
  Parts early_parts(std::uint32_t at, std::size_t peak) const;
  Parts late_parts(std::uint32_t at, std::size_t peak) const;
  template <class Before>
  Parts chosen(std::uint32_t at, std::size_t peak, Parts nodes, Before before) const;
  template <class PartsOf>
  bool move(std::size_t begin, std::size_t end, PartsOf parts_of);
  bool is_group(std::span<const NodeId> own) const {
    return !own.empty() && access_maps_.may_be_in_group(own[0]);
  }
  bool is_read_elsewhere(ValueId value, std::uint32_t at, std::size_t peak) const;

  const Tape& tape_;
  const AccessMaps& access_maps_;
  const NodeId boundary_;
  const std::vector<bool>& present_;
  Units& units_;
  std::vector<bool> has_moved_;       // by node: it is the first one of a unit that has moved
  std::size_t first_backward_ = 0;    // position of the first unit of the backward part
  std::vector<std::uint32_t> maker_;  // by node: the position of the unit that it belongs to
  std::vector<bool> is_kept_;         // by value with storage of its own
  std::vector<Readers> readers_;      // likewise
};

}  // namespace palimpsest
