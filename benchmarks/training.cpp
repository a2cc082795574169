// Training steps as users write them, recorded anew each time: time on one and two threads, forward
// only, and peak bytes. Times that are compared were taken in turns; figures are medians over the
// rounds.
#include "benchmarks/calibration.h"
#include "benchmarks/training/parts.h"

using namespace palimpsest::benchmarks;

namespace {

void claim(const Results& results, Claims& claims) {
  claim_steps(results, claims);
  claim_checkpointed(results, claims);
  claim_extremes(results, claims);
}

}  // namespace

int main(int argc, char** argv) {
  register_steps();
  register_checkpointed();
  register_calibration();
  register_extremes();
  return run_suite(argc, argv, claim);
}
