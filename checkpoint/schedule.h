#pragma once

#include <iosfwd>
#include <optional>
#include <span>
#include <vector>

#include "checkpoint/graph.h"

namespace palimpsest {

/// One step of a schedule. Planners hold many schedules at once, so it is small.
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

/// Which graph a schedule is of, as far as that matters to it.
struct ScheduledGraph {
  std::optional<GraphForm> form = {};  ///< none: the graph was not made of a tape
  std::uint32_t nodes = 0;
  std::uint32_t values = 0;
  std::uint64_t wiring = 0;  ///< `Graph::wiring_hash`

  static ScheduledGraph of(const Graph& graph);
  bool operator==(const ScheduledGraph&) const = default;
};

/// What to do, in order; the one thing every planner produces and the executor carries out.
struct Schedule {
  std::vector<Step> steps;
  /// Of a plan's schedule. Nothing in it for one that was put together by hand.
  std::optional<ScheduledGraph> graph = {};

  /// True for the same steps.
  bool operator==(const Schedule& other) const { return steps == other.steps; }
};

/// What a schedule does to memory and time, exactly.
struct Simulation {
  Bytes peak = 0;                ///< most bytes live at once, workspace included, sources not
  double cost = 0;               ///< seconds of all compute steps
  double one_pass_cost = 0;      ///< seconds of running each needed node once
  std::uint32_t computed = 0;    ///< compute steps
  std::uint32_t recomputed = 0;  ///< compute steps beyond the first of each node
  /// Bytes live while each step runs: what a drop frees still counts during the drop.
  std::vector<Bytes> timeline;
  /// Total cost over the cost of one pass: 1 when nothing is recomputed.
  double cost_ratio() const { return one_pass_cost > 0 ? cost / one_pass_cost : 1.0; }
};

/// Checks a schedule against the specification and measures it.
///
/// The specification. At the start the sources and the values present are live. `compute n` needs
/// n to be no source and every input of it live, and makes every output live; an output live
/// already is written again in place, with the same bits. `drop v` needs v live and no source. At
/// the end every target is live and nothing else but sources. While `compute n` runs, the storages
/// of all live values, of n's outputs and n's workspace count. A view costs no bytes but keeps its
/// storage; dropping a value frees its storage when no other value in it is live. An output
/// whose storage was not live takes over the storage it may be made in (`Graph::may_be_made_in`)
/// where that is given up: from `compute n` on, the two count once. Throws `ScheduleError` naming
/// the step that breaks a rule. Linear in steps and operands.
Simulation simulate(const Graph& graph, const Schedule& schedule);

/// Throws `ScheduleError` when the schedule says that it is of another graph, and what differs.
void require_graph(const Schedule& schedule, const Graph& graph);

/// True when all `live` values in the storage `root` are dropped behind the compute step `at`,
/// before anything else is computed.
bool is_given_up(const Graph& graph, std::span<const Step> steps, std::size_t at, ValueId root,
                 std::uint32_t live);

/// A schedule broke the specification.
class ScheduleError : public UsageError {
 public:
  using UsageError::UsageError;
};

/// One step a line, `compute 12 (matmul)` or `drop 7`.
std::ostream& print(std::ostream& stream, const Graph& graph, const Schedule& schedule);

}  // namespace palimpsest
