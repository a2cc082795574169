#pragma once

#include <span>
#include <vector>

#include "checkpoint/graph.h"

namespace palimpsest {

/// Where storages are live while nodes are computed in some order, with drops as in
/// `drop_after_last_use`. Positions count the steps of the order, −1 is before them. Targets are
/// read at its end. Bytes are rounded as in a layout.
class Timeline {
 public:
  using Position = std::int32_t;

  explicit Timeline(const Graph& graph);

  /// Takes an order in which every value is made before it is read. Reads only the steps that
  /// follow those that it begins with like the order before. Linear at most.
  void read(std::span<const NodeId> order);

  /// Bytes live while each step runs, including workspace, without sources.
  std::span<const Bytes> heights() const { return heights_; }
  /// The first position where most bytes are live, and those bytes.
  Position highest() const { return order_.empty() ? 0 : highest_until_.back(); }
  Bytes peak() const { return order_.empty() ? 0 : heights_[index(highest())]; }

  /// A lower bound on the peak of any order: the bytes of the targets, or the working set of a node
  /// that has to run if that is larger.
  Bytes least_peak() const;

  /// True when `value` was made before `position` and is read there or later.
  bool is_live(ValueId value, Position position) const;

  /// A range between two positions where a storage is live but neither read nor made.
  struct Gap {
    ValueId root;
    Position after;   ///< the last position that reads or makes it
    Position before;  ///< the next one that reads it
  };
  /// The gaps that `position` lies in. Valid until the next call.
  std::span<const Gap> gaps(Position position);
  /// The values of `root`'s storage that are live at `position`.
  void live_values(ValueId root, Position position, std::vector<ValueId>& values) const;

  Bytes bytes(ValueId root) const { return bytes_[root]; }
  /// The values a node reads, each once, without sources.
  std::span<const ValueId> inputs(NodeId node) const {
    return std::span(inputs_).subspan(first_input_[node],
                                      first_input_[node + 1] - first_input_[node]);
  }

 private:
  /// One life of a value: from the step that makes it to the last that reads it.
  struct Life {
    ValueId value;
    Position begin;
    Position end;
    std::uint32_t last_read;  ///< the latest of its reads, or none
    std::uint32_t earlier;    ///< the previous life of the same value, or none
    bool is_cut;              ///< while the order is read: it ended where the order has changed
  };
  struct Read {
    Position position;
    std::uint32_t life;
    std::uint32_t earlier;  ///< the previous read of the same life, or none
  };

  /// Copies of the graph's data on a node and on a value, compact because orders are traversed
  /// often.
  struct Outputs {
    ValueId first;
    ValueId end;
    Bytes workspace;  ///< as a layout rounds it
  };
  struct Place {
    ValueId root;
    ValueId possible_donor;  ///< or none
  };

  static std::size_t index(Position position) { return static_cast<std::size_t>(position); }
  void begin_life(ValueId value, Position position);
  void read_value(ValueId value, Position position);
  void forget_from(Position position);
  void measure(Position first);

  const Graph& graph_;
  std::vector<std::uint32_t> first_input_;  // by node, where its row of `inputs_` begins
  std::vector<ValueId> inputs_;
  std::vector<Outputs> outputs_;            // by node
  std::vector<Place> places_;               // by value
  std::vector<Bytes> bytes_;                // by root
  std::vector<std::uint32_t> first_value_;  // by root, where its row of `values_` begins
  std::vector<ValueId> values_;

  std::vector<NodeId> order_;
  std::vector<Life> lives_;               // by begin: present values, then step by step
  std::vector<Read> reads_;               // step by step, then those of the targets
  std::vector<std::uint32_t> last_life_;  // by value
  std::vector<std::uint32_t> holders_;    // by root: live values in it
  std::vector<std::uint32_t> cut_;        // lives that ended where the order has changed
  Position first_changed_ = 0;            // the first height that may differ from the order before
  std::vector<Bytes> heights_;
  std::vector<Position> highest_until_;  // by position, the highest one up to there
  std::vector<ValueId> candidates_;      // storages that the current step may take over
  std::vector<Gap> gaps_;
  std::vector<std::uint32_t> gap_of_;  // by root, its index in `gaps_`, or none
};

}  // namespace palimpsest
