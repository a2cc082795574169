// How good plans are and how fast they are found. Costs are exact: they come from simulation.
// Graphs published by others are read from the folder that PALIMPSEST_GRAPHS names.
// PALIMPSEST_SECONDS shortens the planning time for each of their budgets, ten seconds by default.
#include "benchmarks/planners/parts.h"

using namespace palimpsest::benchmarks;

namespace {

void claim(const Results& results, Claims& claims) {
  claim_published(results, claims);
  claim_rivals(results, claims);
  claim_small(results, claims);
  claim_growth(results, claims);
  claim_engine(results, claims);
}

}  // namespace

int main(int argc, char** argv) {
  register_published();
  register_rivals();
  register_small();
  register_growth();
  register_engine();
  return run_suite(argc, argv, claim);
}
