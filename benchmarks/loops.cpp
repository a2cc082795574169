// Loops of many steps against the same loops and adjoints written by hand; and loops with spill
// files, small enough for the system's page cache, against unlimited memory. Times that are
// compared were taken in turns, and figures are medians over the rounds. The loop of a million
// steps runs once.
#include "benchmarks/loops/parts.h"

using namespace palimpsest::benchmarks;

namespace {

void claim(const Results& results, Claims& claims) {
  claim_by_hand(results, claims);
  claim_million(results, claims);
  claim_disk(results, claims);
}

}  // namespace

int main(int argc, char** argv) {
  register_by_hand();
  register_million();
  register_disk();
  return run_suite(argc, argv, claim);
}
