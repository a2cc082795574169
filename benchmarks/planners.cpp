// How good plans are and how fast they are found. Costs are exact: they come from simulation.
// Graphs published by others are read from the folder that PALIMPSEST_GRAPHS names.
// PALIMPSEST_SECONDS shortens the planning time for each of their budgets, ten seconds by default.
#include <malloc.h>

#include "benchmarks/planners/parts.h"

using namespace palimpsest::benchmarks;

namespace {

void claim(const Results& results, Claims& claims) {
  claim_published(results, claims);
  claim_rivals(results, claims);
  claim_small(results, claims);
  claim_growth(results, claims);
  claim_engine(results, claims);
  claim_held(results, claims);
}

}  // namespace

int main(int argc, char** argv) {
#ifdef __GLIBC__
  // Large blocks are returned when freed, whatever other rows have freed before. Otherwise the
  // memory of planning would depend on them.
  ::mallopt(M_MMAP_THRESHOLD, 128 << 10);
#endif
  register_published();
  register_rivals();
  register_small();
  register_growth();
  register_engine();
  register_held();
  return run_suite(argc, argv, claim);
}
