#pragma once

#include <iosfwd>
#include <optional>
#include <span>
#include <vector>

#include "autodiff/export.h"
#include "checkpoint/graph.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// One step of a schedule. It is small, because planners hold many schedules at once.
struct Step {
  enum class Kind : std::uint32_t {
    compute,  ///< run node `id`: all its outputs become live
    drop,     ///< value `id` stops being live
  };
  Kind kind : 1;
  std::uint32_t id : 31;

  static Step compute(NodeId node) { return Step{Kind::compute, node}; }
  static Step drop(ValueId value) { return Step{Kind::drop, value}; }
  bool operator==(const Step&) const = default;
};

/// Identifies the graph that a schedule is for, as far as it matters.
struct ScheduledGraph {
  std::optional<GraphForm> form = {};  ///< empty when the graph was not made of a tape
  std::uint32_t nodes = 0;
  std::uint32_t values = 0;
  std::uint64_t wiring = 0;  ///< `Graph::wiring_hash`

  static ScheduledGraph of(const Graph& graph);
  bool operator==(const ScheduledGraph&) const = default;
};

/// The steps to execute, in order. Every planner produces a schedule, and the executor runs it.
struct Schedule {
  std::vector<Step> steps;
  /// Set in a plan's schedule; empty in one that was put together by hand.
  std::optional<ScheduledGraph> graph = {};

  /// Compares the steps only.
  bool operator==(const Schedule& other) const { return steps == other.steps; }
};

/// The exact effect of a schedule on memory and time.
struct Simulation {
  Bytes peak = 0;                ///< most bytes live at once, including workspace, without sources
  double cost = 0;               ///< seconds of all compute steps
  double one_pass_cost = 0;      ///< seconds of running each needed node once
  std::uint32_t computed = 0;    ///< compute steps
  std::uint32_t recomputed = 0;  ///< compute steps beyond the first of each node
  /// Bytes live while each step runs. Bytes that a drop frees still count during the drop.
  std::vector<Bytes> timeline;
  /// Total cost divided by the cost of one pass: 1 when nothing is recomputed.
  double cost_ratio() const { return one_pass_cost > 0 ? cost / one_pass_cost : 1.0; }
};

/// Checks a schedule against the specification and measures it. The specification:
///
/// - At the start, sources and present values are live.
/// - `compute n` requires that n is not a source and that all its inputs are live. It makes every
///   output live. An output that is already live is written again in place, with the same bits.
/// - `drop v` requires that v is live and not a source.
/// - At the end every target is live, and nothing else but sources.
/// - While `compute n` runs, the storages of all live values, of n's outputs and n's workspace
///   count.
/// - A view costs no bytes but keeps its storage. Dropping a value frees its storage when no other
///   value in it is live.
/// - An output whose storage was not live takes over the storage it may be made in
///   (`Graph::possible_donor`), provided that storage is given up (`is_given_up`). From `compute n`
///   on, the two count once.
///
/// Throws `ScheduleError` naming the step that breaks a rule. Linear in steps and operands.
Simulation simulate(const Graph& graph, const Schedule& schedule);

/// Throws `ScheduleError` when the schedule was made for another graph, and says how they differ.
void require_graph(const Schedule& schedule, const Graph& graph);

/// True when all `live` values in the storage `root` are dropped after the compute step `at`,
/// before anything else is computed.
bool is_given_up(const Graph& graph, std::span<const Step> steps, std::size_t at, ValueId root,
                 std::uint32_t live);

/// A schedule that breaks the specification.
class ScheduleError : public UsageError {
 public:
  using UsageError::UsageError;
};

/// One step per line, `compute 12 (matmul)` or `drop 7`.
std::ostream& print(std::ostream& stream, const Graph& graph, const Schedule& schedule);

/// The schedule that computes `nodes` in this order and holds each value no longer than necessary.
/// A value is dropped after the last step that reads it before it is made again, or at once when no
/// step does. A target made for the last time is never dropped. No other choice of drops has a
/// lower peak for this order. Throws `InternalError` when a value is read before it is made.
Schedule drop_after_last_use(const Graph& graph, std::span<const NodeId> nodes);

/// The nodes that a schedule computes, in order.
std::vector<NodeId> order_of(const Schedule& schedule);

/// `nodes` without those whose outputs are neither read nor targets before they are made again.
std::vector<NodeId> without_useless(const Graph& graph, std::span<const NodeId> nodes);

}  // namespace palimpsest
