#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "benchmarks/claims.h"
#include "checkpoint/lower_bound.h"
#include "palimpsest.h"

/// Each part of the suite registers its benchmarks and claims what must hold for their
/// measurements.
namespace palimpsest::benchmarks {

/// Against published costs of published graphs, if PALIMPSEST_GRAPHS names their folder.
void register_published();
void claim_published(const Results& results, Claims& claims);

/// The planner `auto` with a hundred moves, against every other planner at many budgets of many
/// networks.
void register_rivals();
void claim_rivals(const Results& results, Claims& claims);

/// `auto` against the optimum of small graphs.
void register_small();
void claim_small(const Results& results, Claims& claims);

/// Planning time and memory as graphs grow.
void register_growth();
void claim_growth(const Results& results, Claims& claims);

/// Training loops whose budget is planned with the defaults.
void register_engine();
void claim_engine(const Results& results, Claims& claims);

/// Loops that hold only the components of their state that derivatives read.
void register_held();
void claim_held(const Results& results, Claims& claims);

/// The value of a counter that has no value.
inline constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
/// The cost when no plan fits.
inline constexpr double infeasible = std::numeric_limits<double>::infinity();

/// The relative distance of a cost from the lower bound for the budget; an upper bound of its
/// distance from the optimum.
inline double gap(const Graph& graph, double cost, Bytes budget) {
  return cost / lower_bound(graph, budget) - 1;
}

/// The lowest cost of `planner`'s proposals, in seconds, within a budget of live bytes. Ignores the
/// placement of buffers in an arena, as most of the literature does.
inline double cheapest(const Graph& graph, const Planner& planner, Bytes budget) {
  double best = infeasible;
  for (const Proposal& proposal : planner.propose(graph, budget)) {
    const Simulation simulation = simulate(graph, proposal.schedule);
    if (simulation.peak <= budget) best = std::min(best, simulation.cost);
  }
  return best;
}

}  // namespace palimpsest::benchmarks
