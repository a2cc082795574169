#include "strategy/mpi/core_share.h"

#include <vector>

#include "strategy/mpi/rank_link.h"
#include "tests/strategy/mpi/ranks.h"

namespace palimpsest::core_share_test {
namespace {

TEST_CASE("ranks share out the cores that they may use in common") {
  const auto share = [](std::initializer_list<const char*> sets, std::size_t own) {
    const std::vector<CoreSet> all(sets.begin(), sets.end());
    return share_of_cores(all, own);
  };
  // All of 8 cores, or of the 2 that the job has.
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK(share({"11111111", "11111111"}, rank) == 4);
    CHECK(share({"00001100", "00001100"}, rank) == 1);
  }
  // Each bound to cores of its own.
  CHECK(share({"1111", "11110000"}, 0) == 4);
  CHECK(share({"1", "1110"}, 0) == 1);
  CHECK(share({"1", "1110"}, 1) == 3);
  // Two and two on the same cores, and one that is bound to none of theirs.
  CHECK(share({"0001111", "0001111", "1110000"}, 1) == 2);
  CHECK(share({"0001111", "0001111", "1110000"}, 2) == 3);
  // In a row, of which neighbours have a core in common.
  CHECK(share({"000011", "000110", "001100", "011000"}, 0) == 1);
  CHECK(share({"0000111111", "1111110000"}, 1) == 5);
  // More ranks than cores.
  CHECK(share({"11", "11", "11"}, 2) == 1);
  CHECK(share({"0"}, 0) == 1);
}

TEST_CASE("a rank has cores, and no more than the machine") {
  CHECK(usable_cores().any());
  CHECK(world().link().cores() >= 1);
  CHECK(world().link().cores() <= static_cast<int>(usable_cores().count()));
}

}  // namespace
}  // namespace palimpsest::core_share_test
