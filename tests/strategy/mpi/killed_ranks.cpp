// A run with journals that a test kills. Compares the result with that of the whole ring.
//
//   killed_ranks FOLDER MICROSECONDS
//
// Each rank writes its process number into FOLDER, for the test, and its result.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <string>
#include <thread>

#include "tests/strategy/mpi/ring.h"

using namespace palimpsest;
using namespace palimpsest::tests;

namespace {

constexpr std::uint64_t steps = 200;
constexpr std::size_t size = 100;

/// Returns what this rank found.
std::string run(RankWorld& world, const std::string& folder, std::chrono::microseconds pause) {
  Ring ring(size, world.rank(), world.size());
  ReverseFunctions<Ring::Numbers> functions = ring.functions();
  functions.advance = [&](Ring::Numbers& u, std::uint64_t n) {
    if (pause.count() < 0 && world.rank() == 1 && n == 20) throw FileError("cannot read step 20");
    ring.advance(u, n);
    std::this_thread::sleep_for(pause);
  };
  ReverseDriver driver(functions, {.steps = steps,
                                   .memory_budget = 200_KiB,
                                   .spill = folder + "/journal",
                                   .disk_costs = DiskCosts{1, 1},
                                   .resume = folder + "/journal",
                                   .tag = "ring 1",
                                   .record_every = std::chrono::seconds(0),
                                   .group = reverse_ranks(world, std::chrono::seconds(1))});
  Ring::Numbers u = ring.start();
  const std::string found = ring.bits_of(*driver.run(u));
  Ring whole(size, 0, 1);
  const std::string expected = whole.plain(steps);
  const bool is_right = expected.compare(16 * ring.first(), 16 * ring.size(), found) == 0 &&
                        (ring.first() > 0 || ring.loss == whole.loss);
  const auto at = driver.report().resumed_at;
  return std::string(is_right ? "right" : "wrong") + (at ? ", resumed" : "");
}

}  // namespace

int main(int, char** argv) {
  const std::string folder = argv[1];
  RankWorld world;
  const std::string rank = std::to_string(world.rank());
  try {
    std::ofstream(folder + "/process-" + rank) << getpid();
    const std::string result = run(world, folder, std::chrono::microseconds(std::atol(argv[2])));
    std::ofstream(folder + "/result-" + rank) << result;
  } catch (const std::exception& error) {
    if (world.first_failed().value_or(world.rank()) == world.rank()) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    return 1;
  }
  return 0;
}
