#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autodiff/bytes.h"
#include "autodiff/export.h"
#include "autodiff/tape.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// How the nodes of a tape became those of a graph.
struct GraphForm {
  bool fuse = false;  ///< a node may stand for a group that runs as one fused kernel
  /// Common subexpressions are computed once, and constants are folded.
  bool simplify = false;
  bool operator==(const GraphForm&) const = default;
};

/// A planner's view of a program: sizes, costs and dependencies, but not what is computed.
///
/// Nodes and values are numbered as on a tape, and every node reads earlier values only. Each value
/// has a *storage*: its own, or that of the value it is a view of. A storage is live while any
/// value in it is live, and its bytes count once.
class Graph {
 public:
  struct Output {
    Bytes bytes = 0;
    /// Index of the input whose storage the output shares, or −1.
    int view_of = -1;
    /// Index of the input whose storage the output may be made in, or −1. It is used only where all
    /// values in that storage are dropped before anything else is computed.
    int takes_over = -1;
  };
  struct Traits {
    double cost = 0;      ///< seconds the node takes
    Bytes workspace = 0;  ///< bytes live only while it runs
    bool source = false;  ///< supplied by the user: always live, never computed, outside the budget
    bool serial = false;  ///< runs long on one thread; others like it may run concurrently
    /// Neither its run time nor its use of threads is known. It may run concurrently with others,
    /// and always counts as worth that, whatever its cost.
    bool opaque = false;
    std::string name = {};  ///< for messages and pictures; may be empty
    /// Nodes of the tape that it runs, for `tape_nodes`.
    std::span<const NodeId> tape_nodes = {};
  };

  /// Appends a node and returns its id. Throws `ArgumentError` naming the node for
  /// - an input that does not exist yet, or a source with inputs,
  /// - a negative size or cost, an infinite cost, or sizes beyond any memory,
  /// - an output that is a view of, or takes over, an input that is not there.
  NodeId add_node(std::span<const ValueId> inputs, std::span<const Output> outputs, Traits traits);
  /// Requires `value` to be live at the end.
  void add_target(ValueId value);
  /// Declares that `value` is live already when the schedule starts.
  void set_present(ValueId value);
  /// Declares that the caller of the run provides the memory for `value`, which must have a storage
  /// of its own. It takes no bytes of the budget, and no output is made in its place.
  void place_elsewhere(ValueId value);
  /// Sets the seconds that the node takes. Throws `ArgumentError` for a negative or an infinite
  /// number.
  void set_cost(NodeId node, double seconds);
  /// Declares that several threads run steps, so that independent steps can run concurrently.
  void set_parallel() { parallel_ = true; }
  /// Sets the first node of the backward part, for planners that distinguish the two.
  void set_backward_begins(NodeId node) { backward_begins_ = node; }
  /// Declares that the graph is made of a tape. Its nodes then say which tape nodes they run.
  void set_form(GraphForm form) { origin_.form = form; }

  /// Nodes and values have the numbers from 0 to these counts. `inputs` are the values that a node
  /// reads, in the order of its operands.
  std::uint32_t node_count() const { return static_cast<std::uint32_t>(nodes_.size()); }
  std::uint32_t value_count() const { return static_cast<std::uint32_t>(values_.size()); }
  std::span<const ValueId> inputs(NodeId node) const {
    const std::size_t first = nodes_[node].first_input;
    const bool last = node + 1 == nodes_.size();
    return {inputs_.data() + first, (last ? inputs_.size() : nodes_[node + 1].first_input) - first};
  }
  /// The outputs of a node have consecutive numbers.
  ValueId first_output(NodeId node) const { return nodes_[node].first_output; }
  std::uint32_t output_count(NodeId node) const {
    const bool last = node + 1 == nodes_.size();
    return (last ? value_count() : nodes_[node + 1].first_output) - first_output(node);
  }
  /// What `add_node` and `set_cost` were told of a node; see `Traits`.
  double cost(NodeId node) const { return nodes_[node].cost; }
  Bytes workspace(NodeId node) const { return nodes_[node].workspace; }
  bool is_source(NodeId node) const { return nodes_[node].source; }
  bool is_serial(NodeId node) const { return nodes_[node].serial; }
  bool is_opaque(NodeId node) const { return nodes_[node].opaque; }
  /// The node's name, empty when it has none.
  std::string_view name(NodeId node) const;
  /// The node's name, or `#id` when it has none.
  std::string describe(NodeId node) const;

  /// The node that makes a value, and whether that node is a source.
  NodeId producer(ValueId value) const { return values_[value].node; }
  bool is_source_value(ValueId value) const { return values_[value].source; }
  /// The value whose storage this one lies in: itself unless it is a view.
  ValueId storage(ValueId value) const { return values_[value].storage; }
  /// Index of the input of the value's node whose storage it shares, or −1.
  int view_of(ValueId value) const;
  /// Index of the input of the value's node whose storage it may take over, or −1.
  int takes_over(ValueId value) const { return values_[value].takes_over; }
  /// The storage that this value may be made in, or `none`. It has as many bytes as the value, the
  /// node reads it through one input only, and no earlier output of the node may take it over.
  ValueId possible_donor(ValueId value) const { return values_[value].made_in; }
  /// Bytes of the value's own storage: 0 for a view and for a value in a source's storage.
  Bytes bytes(ValueId value) const { return values_[value].source ? 0 : values_[value].bytes; }
  /// Bytes of a source's value, which are outside every budget; 0 for any other value.
  Bytes source_bytes(ValueId value) const {
    return values_[value].source ? values_[value].bytes : 0;
  }
  /// Approximate bytes of the graph itself.
  Bytes metadata_bytes() const;
  /// Bytes of all sources, which are always resident.
  Bytes resident() const;
  /// Whether `set_present` was called for a value that is not a source; whether `add_target` or
  /// `place_elsewhere` was called.
  bool is_present(ValueId value) const { return values_[value].present; }
  bool is_target(ValueId value) const { return values_[value].target; }
  bool is_elsewhere(ValueId value) const { return values_[value].elsewhere; }

  /// What was declared: values live at the end, the first node of the backward part, if there is
  /// one, and whether several threads run steps.
  std::span<const ValueId> targets() const { return targets_; }
  std::optional<NodeId> backward_begins() const { return backward_begins_; }
  bool is_parallel() const { return parallel_; }
  /// How it was made of a tape; empty when it was not.
  std::optional<GraphForm> form() const { return origin_.form; }
  /// The nodes of the tape that a node runs. A group may run one of them more than once. Empty in a
  /// graph that was not made of a tape.
  std::span<const NodeId> tape_nodes(NodeId node) const;

  /// Nodes that have to run when nothing is recomputed: ancestors of the targets up to present
  /// values, in order.
  std::vector<NodeId> needed_nodes() const;
  /// Seconds of running each needed node once.
  double one_pass_cost() const;
  /// Changes whenever anything that a planner or a layout can see changes; equal for equal graphs.
  /// Names do not count.
  std::uint64_t structure_hash() const;
  /// A hash of what nodes read and make, of sources, views and targets. When two graphs have the
  /// same hash, a schedule of one is a schedule of the other, provided the same values are present.
  /// Bytes, seconds and names do not count.
  std::uint64_t wiring_hash() const;
  /// Ignores the form and the nodes of the tape.
  bool operator==(const Graph& other) const = default;

 private:
  struct Node {
    std::uint32_t first_input;
    ValueId first_output;
    double cost;
    Bytes workspace;
    bool source;
    bool serial;
    bool opaque;
    bool operator==(const Node&) const = default;
  };
  struct Value {
    NodeId node;
    ValueId storage;
    Bytes bytes;  // including a source's
    bool source;
    bool present;
    bool target;
    bool elsewhere;
    int takes_over;
    ValueId made_in;
    bool operator==(const Value&) const = default;
  };

  /// Always equal, because programs with equal graphs have the same plans.
  struct Origin {
    std::optional<GraphForm> form;
    std::vector<NodeId> nodes;               // of the tape, grouped by node
    std::vector<std::uint32_t> first_nodes;  // by node
    bool operator==(const Origin&) const { return true; }
  };

  ValueId find_made_in(std::span<const ValueId> inputs, ValueId first_output,
                       const Output& output) const;

  std::vector<Node> nodes_;
  std::vector<ValueId> inputs_;
  std::vector<Value> values_;
  std::vector<ValueId> targets_;
  std::vector<std::string> names_;  // empty, or one per node
  std::optional<NodeId> backward_begins_;
  bool parallel_ = false;
  Bytes total_bytes_ = 0;  // of all values and workspaces
  Origin origin_;
};

}  // namespace palimpsest
