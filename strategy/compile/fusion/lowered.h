#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "checkpoint/schedule.h"
#include "checkpoint/tape_graph.h"
#include "strategy/compile/fusion/donation.h"
#include "strategy/compile/fusion/epilogues.h"
#include "strategy/compile/fusion/fused_kernel.h"
#include "strategy/compile/fusion/simplification.h"

namespace palimpsest {

/// The graph that is planned and run in place of a tape's nodes. Its nodes are units: a single
/// recorded node, a fused group of nodes, or a node with a fused sum or epilogue.
class Lowered {
 public:
  /// The recorded nodes that a node of the graph runs.
  struct Entry {
    NodeId node;  ///< the recorded node; the last one of a group, the product of an accumulation
    std::uint32_t program = none;   ///< of a group
    bool accumulates = false;       ///< the last input is added to the node's result
    std::uint32_t epilogue = none;  ///< of a node with a fused epilogue
    Cost cost = {};                 ///< joint cost of fused nodes; empty for a single node
  };

  /// Lowers what `targets` need of the simplified tape, with elementwise nodes in groups; otherwise
  /// as `graph_of`. Present values are kept; with `afresh` they are treated as absent.
  static Lowered fused(const Tape& tape, std::span<const ValueId> targets, int threads,
                       NodeId backward_begins, std::span<const NodeId> supplied,
                       const Simplification& simplification = {}, bool afresh = false,
                       const Machine& machine = {});
  /// Likewise without fusion: one unit per node, with the numbers of the tape.
  static Lowered unfused(const Tape& tape, std::span<const ValueId> targets, int threads,
                         NodeId backward_begins, std::span<const NodeId> supplied,
                         const Simplification& simplification = {}, bool afresh = false,
                         const Machine& machine = {});
  /// Replaces the costs of units by known seconds.
  void take_costs(const std::function<std::optional<double>(NodeId unit)>& known);

  /// Lets the caller of the run provide the memory of targets that own their storage and are not
  /// sources. In the instructions they then count as sources.
  void place_results_elsewhere(std::span<const Donation> donations = {});
  /// The recorded sources that the caller donated to a target with storage of its own.
  std::span<const ValueId> donated_to(ValueId target) const {
    const auto found = donated_.find(target);
    return found == donated_.end() ? std::span<const ValueId>() : found->second;
  }

  /// Approximate bytes of this object.
  Bytes bytes() const;

  const Graph& graph() const { return graph_; }
  /// Seconds of running each needed unit once.
  double one_pass_cost() const { return one_pass_cost_; }
  /// The recorded value of a value of the graph.
  ValueId recorded(ValueId value) const { return recorded_[value]; }
  /// The recorded node of a unit.
  NodeId node(NodeId unit) const { return units_[unit].node; }
  /// The recorded nodes that a unit runs; a node that it runs several times occurs as often.
  std::span<const NodeId> members(NodeId unit) const { return graph_.tape_nodes(unit); }
  /// By node of a tape with `node_count` nodes: how often a schedule of the graph runs it.
  std::vector<std::uint32_t> runs(const Schedule& schedule, std::uint32_t node_count) const;
  /// The fused kernel of a group; null for a node that runs by itself.
  const FusedKernel* program(NodeId unit) const {
    const std::uint32_t program = units_[unit].program;
    return program == none ? nullptr : &programs_[program];
  }
  /// The fused epilogue of a unit; null without one.
  const Epilogue* epilogue(NodeId unit) const {
    const std::uint32_t epilogue = units_[unit].epilogue;
    return epilogue == none ? nullptr : &epilogues_[epilogue];
  }
  /// The `full` attributes of a recorded node that was folded to a constant; null for
  /// other nodes.
  const Attributes* folded_constant(NodeId node) const;
  /// A requested value, and the value of the graph that represents it.
  struct Result {
    ValueId recorded;
    ValueId value;
  };
  std::span<const Result> results() const { return results_; }
  /// Number of recorded nodes removed as common subexpressions or identities.
  std::uint32_t common_subexpressions() const { return common_subexpressions_; }
  /// Number of recorded nodes folded to constants.
  std::uint32_t folded_constants() const {
    return static_cast<std::uint32_t>(folded_constants_.size());
  }
  /// Number of units that are fused groups.
  std::uint32_t groups() const { return static_cast<std::uint32_t>(programs_.size()); }
  /// True for a product that is added to the last of its inputs.
  bool accumulates(NodeId unit) const { return units_[unit].accumulates; }
  /// The joint cost of a group, or of a node with its epilogue; empty for a single node.
  const Cost& joint_cost(NodeId unit) const { return units_[unit].cost; }

 private:
  class Builder;

  explicit Lowered(const Simplification& simplification);
  /// Notes the places of the targets when the graph is complete.
  template <class Place>
  void finish(std::span<const ValueId> targets, Place place, const Simplification& simplification);

  Graph graph_;
  double one_pass_cost_ = 0;
  std::vector<Entry> units_;       // by node of the graph
  std::vector<ValueId> recorded_;  // by value of the graph
  std::vector<FusedKernel> programs_;
  std::vector<Epilogue> epilogues_;
  std::vector<Result> results_;
  std::map<ValueId, std::vector<ValueId>> donated_;   // by root of a target
  Simplification::FoldedConstants folded_constants_;  // ordered by node
  std::uint32_t common_subexpressions_ = 0;
};

/// A pointer to the graph that keeps `lowered` alive.
inline std::shared_ptr<const Graph> graph_in(const std::shared_ptr<const Lowered>& lowered) {
  return {lowered, &lowered->graph()};
}

}  // namespace palimpsest
