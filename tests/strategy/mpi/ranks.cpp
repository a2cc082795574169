#include "tests/strategy/mpi/ranks.h"

namespace palimpsest {

RankWorld& world() {
  static RankWorld world;
  return world;
}

}  // namespace palimpsest
