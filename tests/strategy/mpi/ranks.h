#pragma once

#include "strategy/mpi/distributed_execution.h"
#include "tests/catch.h"

namespace palimpsest {

/// The world of this program, which `mpirun` starts as several processes. All ranks run every test
/// case. A check on a single rank must not end a case there, as REQUIRE does.
RankWorld& world();

/// How a call of all ranks failed on this rank; without messages when it succeeded.
struct Failure {
  std::string own;       ///< message of an error other than a RankError
  std::string of_other;  ///< message of a RankError
  int rank = -1;         ///< the rank that the RankError names
};

template <class F>
Failure failure_of(F f) {
  try {
    f();
  } catch (const RankError& error) {
    return {"", error.what(), error.rank()};
  } catch (const std::exception& error) {
    return {error.what(), "", -1};
  }
  return {};
}

}  // namespace palimpsest
