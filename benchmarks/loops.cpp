// Loops of many steps against the same loops and adjoints written by hand, and with files that the
// system's cache can hold against unlimited memory. Compared times were taken in turns, but for the
// million steps, which are run once; figures are medians over the rounds.
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
