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
  // All ranks may use all 8 cores, or the 2 cores of the job.
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK(share({"11111111", "11111111"}, rank) == 4);
    CHECK(share({"00001100", "00001100"}, rank) == 1);
  }
  // Each rank is bound to its own cores.
  CHECK(share({"1111", "11110000"}, 0) == 4);
  CHECK(share({"1", "1110"}, 0) == 1);
  CHECK(share({"1", "1110"}, 1) == 3);
  // Two ranks on the same cores, and one on other cores.
  CHECK(share({"0001111", "0001111", "1110000"}, 1) == 2);
  CHECK(share({"0001111", "0001111", "1110000"}, 2) == 3);
  // Each rank shares a core with its neighbours.
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
