#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "checkpoint/schedule.h"
#include "checkpoint/tape_graph.h"
#include "strategy/compile/fusion/finishes.h"
#include "strategy/compile/fusion/simplification.h"
#include "strategy/compile/fusion/tile_program.h"

namespace palimpsest {

/// What is run in place of a tape's nodes, and planned: a graph whose nodes are units, each a
/// recorded node, a group of them that run as one, or a product and the sum that it makes.
class Lowered {
 public:
  /// What one node of the graph stands for.
  struct Entry {
    NodeId node;  ///< recorded; of a group the last, of an accumulation the product
    std::uint32_t program = none;    ///< of a group
    bool accumulates = false;        ///< the last input is added to what the node makes
    std::uint32_t finishing = none;  ///< of a node that carries out another
    Cost cost = {};                  ///< of what is carried out together; none of a single node
  };

  /// Units for what `targets` need of a tape that is simplified, elementwise nodes in groups;
  /// otherwise as `graph_of`. Values that are present are kept as they are, or taken for absent
  /// with `afresh`.
  static Lowered fused(const Tape& tape, std::span<const ValueId> targets, int threads,
                       NodeId backward_begins, std::span<const NodeId> supplied,
                       const Simplification& simplification = {}, bool afresh = false,
                       const Machine& machine = {});
  /// A unit for each node, numbered as on the tape.
  static Lowered unfused(const Tape& tape, std::span<const ValueId> targets, int threads,
                         NodeId backward_begins, std::span<const NodeId> supplied,
                         const Simplification& simplification = {}, bool afresh = false,
                         const Machine& machine = {});
  /// Takes units to run for as many seconds as are known of them.
  void take_costs(const std::function<std::optional<double>(NodeId unit)>& known);

  /// Has what was asked for made in memory that the caller of the run names, where it is a storage
  /// of its own and no source: it is among the sources of the instructions then.
  void place_results_elsewhere();

  /// Bytes that this takes itself, about.
  Bytes bytes() const;

  const Graph& graph() const { return graph_; }
  /// Seconds of running each needed unit once.
  double one_pass_cost() const { return one_pass_cost_; }
  /// Recorded value of a value of the graph.
  ValueId recorded(ValueId value) const { return recorded_[value]; }
  /// The recorded node of an entry.
  NodeId node(NodeId unit) const { return units_[unit].node; }
  /// The recorded nodes that a unit runs; one that it runs more than once stands here as often.
  std::span<const NodeId> members(NodeId unit) const { return graph_.tape_nodes(unit); }
  /// By node of a tape with so many, how often a schedule of the graph runs it.
  std::vector<std::uint32_t> runs(const Schedule& schedule, std::uint32_t node_count) const;
  /// The program of a group; null for a node that runs by itself.
  const TileProgram* program(NodeId unit) const {
    const std::uint32_t program = units_[unit].program;
    return program == none ? nullptr : &programs_[program];
  }
  /// What a node carries out on what it makes; null for others.
  const Finishing* finishing(NodeId unit) const {
    const std::uint32_t finishing = units_[unit].finishing;
    return finishing == none ? nullptr : &finishings_[finishing];
  }
  /// What a `full` makes the number of that a recorded node is run as; null for other nodes.
  const Attributes* literal(NodeId node) const;
  /// A value that was asked for, and the one of the graph that is given for it.
  struct Result {
    ValueId recorded;
    ValueId value;
  };
  std::span<const Result> results() const { return results_; }
  /// Recorded nodes that are not run since others make the same.
  std::uint32_t merged() const { return merged_; }
  /// Recorded nodes that are not run since they make a number.
  std::uint32_t folded() const { return static_cast<std::uint32_t>(literals_.size()); }
  /// Units that are groups of nodes.
  std::uint32_t groups() const { return static_cast<std::uint32_t>(programs_.size()); }
  /// True for a product that is added to what comes last among the inputs.
  bool accumulates(NodeId unit) const { return units_[unit].accumulates; }
  /// Work of a group, or of a node and what it carries out; none of a single node.
  const Cost& joint_cost(NodeId unit) const { return units_[unit].cost; }

 private:
  class Builder;

  explicit Lowered(const Simplification& simplification);
  /// Notes where the targets lie, once the graph is there.
  template <class Place>
  void finish(std::span<const ValueId> targets, Place place, const Simplification& simplification);

  Graph graph_;
  double one_pass_cost_ = 0;
  std::vector<Entry> units_;       // by node of the graph
  std::vector<ValueId> recorded_;  // by value of the graph
  std::vector<TileProgram> programs_;
  std::vector<Finishing> finishings_;
  std::vector<Result> results_;
  Simplification::Literals literals_;  // in order
  std::uint32_t merged_ = 0;
};

/// The graph, which keeps what it is of alive.
inline std::shared_ptr<const Graph> graph_in(const std::shared_ptr<const Lowered>& lowered) {
  return {lowered, &lowered->graph()};
}

}  // namespace palimpsest
