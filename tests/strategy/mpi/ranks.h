#pragma once

#include "strategy/mpi/distributed_execution.h"
#include "tests/catch.h"

namespace palimpsest {

/// The one of this program, which `mpirun` starts as several processes. All of them run every test
/// case: what is checked on one of them only must not end a case there, as REQUIRE does.
RankWorld& world();

/// How a call of all ranks failed here; no message where it did not.
struct Failure {
  std::string own;       ///< message, unless it is a RankError
  std::string of_other;  ///< message of a RankError
  int rank = -1;         ///< that it names
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
