#include "checkpoint/pareto_front.h"

#include <algorithm>

namespace palimpsest {

Measured measure(const Graph& graph, Proposal proposal) {
  const Simulation simulation = simulate(graph, proposal.schedule);
  return {std::make_shared<const Proposal>(std::move(proposal)), simulation.peak, simulation.cost};
}

std::vector<Measured> measure(const Graph& graph, std::vector<Proposal> proposals,
                              const std::string& planner) {
  std::vector<Measured> measured;
  measured.reserve(proposals.size());
  for (Proposal& proposal : proposals) {
    if (proposal.planner.empty()) proposal.planner = planner;
    measured.push_back(measure(graph, std::move(proposal)));
  }
  return measured;
}

void cheapest_first(std::span<Measured> measured) {
  std::stable_sort(measured.begin(), measured.end(), [](const Measured& a, const Measured& b) {
    return a.cost < b.cost || (a.cost == b.cost && a.peak < b.peak);
  });
}

std::vector<Proposal> proposals_of(std::vector<Measured> measured) {
  std::vector<Proposal> proposals;
  proposals.reserve(measured.size());
  for (Measured& one : measured) {
    proposals.push_back(*one.proposal);
    one.proposal.reset();  // frees memory for the next one, unless it is shared
  }
  return proposals;
}

void ParetoFront::add(Measured measured) {
  const auto beats = [](const Measured& a, const Measured& b) {
    const bool lower = a.peak < b.peak - b.peak / 64;
    const bool same = a.peak == b.peak && a.cost == b.cost;
    return a.proposal->planner == b.proposal->planner && a.cost <= b.cost && (lower || same);
  };
  if (std::ranges::any_of(measured_, [&](const Measured& one) { return beats(one, measured); })) {
    return;
  }
  std::erase_if(measured_, [&](const Measured& one) { return beats(measured, one); });
  measured_.push_back(std::move(measured));
}

}  // namespace palimpsest
