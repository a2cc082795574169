#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "benchmarks/claims.h"
#include "checkpoint/lower_bound.h"
#include "palimpsest.h"

/// Each part of the suite registers its benchmarks, and claims what must be true of what they
/// measured.
namespace palimpsest::benchmarks {

/// Against costs published for graphs of others, where PALIMPSEST_GRAPHS says they are.
void register_published();
void claim_published(const Results& results, Claims& claims);

/// The planner `auto`, given a hundred moves, against every other at many budgets of many networks.
void register_rivals();
void claim_rivals(const Results& results, Claims& claims);

/// `auto` against the optimum of small graphs.
void register_small();
void claim_small(const Results& results, Claims& claims);

/// What planning takes as graphs grow.
void register_growth();
void claim_growth(const Results& results, Claims& claims);

/// Training loops whose budget is planned by default.
void register_engine();
void claim_engine(const Results& results, Claims& claims);

/// A counter's value for what there is none of.
inline constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
/// The cost where no plan fits.
inline constexpr double infeasible = std::numeric_limits<double>::infinity();

/// The share by which the cost is above what no schedule within the budget is below, at most.
inline double gap(const Graph& graph, double cost, Bytes budget) {
  return cost / lower_bound(graph, budget) - 1;
}

/// The least cost of what `planner` proposes, in seconds, within a budget of live bytes; the place
/// its buffers find in an arena is left out of account, as in most of the literature.
inline double cheapest(const Graph& graph, const Planner& planner, Bytes budget) {
  double best = infeasible;
  for (const Proposal& proposal : planner.propose(graph, budget)) {
    const Simulation simulation = simulate(graph, proposal.schedule);
    if (simulation.peak <= budget) best = std::min(best, simulation.cost);
  }
  return best;
}

}  // namespace palimpsest::benchmarks
