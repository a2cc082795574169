#include "strategy/compile/forecast.h"

#include <algorithm>
#include <vector>

#include "checkpoint/cache_seconds.h"
#include "checkpoint/dependencies.h"
#include "checkpoint/lanes.h"
#include "strategy/compile/cache_budget.h"

namespace palimpsest {
namespace {

/// The longest chain of dependent steps. Each is divided among threads unless it is serial or
/// short.
double longest_chain(const Graph& graph, const Plan& plan, int threads) {
  const Dependencies dependencies(graph, plan.schedule, plan.layout);
  const std::vector<Step>& steps = plan.schedule.steps;
  std::vector<double> ready(steps.size());
  double longest = 0;
  for (std::uint32_t k = 0; k < steps.size(); ++k) {
    double end = ready[k];
    if (steps[k].kind == Step::Kind::compute) {
      end += seconds_of_step(graph.cost(steps[k].id), graph.is_serial(steps[k].id), threads);
    }
    longest = std::max(longest, end);
    for (const std::uint32_t next : dependencies.successors(k)) {
      ready[next] = std::max(ready[next], end);
    }
  }
  return longest;
}

}  // namespace

double seconds_of_step(double alone, bool serial, int threads) {
  return alone > shared_from && !serial ? alone / threads : alone;
}

double seconds_of_run(const Graph& graph, const Plan& plan, int threads, const Machine& machine,
                      bool measured) {
  Plan priced = plan;
  priced.simulation.cost = 0;
  for (const Step step : plan.schedule.steps) {
    if (step.kind == Step::Kind::compute) priced.simulation.cost += graph.cost(step.id);
  }
  const double all = priced.simulation.cost;
  if (all == 0) return 0;
  const double alone =
      has_caches(machine) && !measured ? seconds_in_caches(graph, priced, machine) : all;
  if (threads == 1) return alone;
  return alone / all * std::max(all / threads, longest_chain(graph, plan, threads));
}

}  // namespace palimpsest
