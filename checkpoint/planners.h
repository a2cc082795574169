#pragma once

#include <string>
#include <variant>
#include <vector>

#include "checkpoint/planner.h"

namespace palimpsest {

/// A range of nodes [first, last] planned as a unit: its values are dropped after the forward part
/// and computed again when the backward part needs them.
struct Segment {
  NodeId first;
  NodeId last;
};

/// Computes each needed node once and drops each value after its last use.
PlannerPtr keep_all();

/// Cuts the forward part into equal segments and recomputes all but the last.
struct Uniform {
  std::uint32_t segments = 0;  ///< number of segments; or
  std::uint32_t every = 0;     ///< nodes in each: give exactly one of the two
};
/// Throws `ArgumentError` when both or neither setting is given.
PlannerPtr uniform(Uniform settings);

/// Recomputes exactly the nodes of the given segments. Throws `ArgumentError`, at planning, for
/// segments that overlap, repeat, are reversed, or reach beyond the forward part.
PlannerPtr selected(std::vector<Segment> segments);

/// √n segments of equal size (Chen et al., 2016).
PlannerPtr square_root();

/// The cheapest plan within `fraction` of keep-all's peak. Throws `ArgumentError` unless it lies in
/// [0, 1].
PlannerPtr fraction(double fraction);

/// The best of all planners here and of offline eviction: values are dropped when memory runs
/// short, those first whose recomputation is cheap for the bytes and the time they free, with the
/// next use known (after DTR, Kirisame et al., 2021, and Belady, 1966).
PlannerPtr automatic();

}  // namespace palimpsest
