#include "autodiff/in_use.h"

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/error_of.h"

namespace palimpsest::in_use_test {
namespace {

using Catch::Matchers::Contains;
using Level = InUse::Level;

constexpr InUse::Purpose opened{Level::open, "it is open"};
constexpr InUse::Purpose recorded{Level::records, "it records"};
constexpr InUse::Purpose computed{Level::computes, "it computes"};
constexpr InUse::Purpose changed{Level::computes, "it changes", true};
constexpr InUse::Purpose called{Level::alone, "it is called"};

/// Whether a use can begin.
bool begins(InUse& object, const InUse::Purpose& purpose) {
  try {
    const InUse::Use use(object, purpose, "f");
    return true;
  } catch (const TapeError&) {
    return false;
  }
}

bool begins_on_another_thread(InUse& object, const InUse::Purpose& purpose) {
  bool does = false;
  std::thread([&] { does = begins(object, purpose); }).join();
  return does;
}

TEST_CASE("a use permits its own caller uses of its level and later ones, and others none") {
  const InUse::Purpose* const in_order[] = {&opened, &recorded, &computed};
  for (int outer = 0; outer < 3; ++outer) {
    InUse object("thing");
    const InUse::Use use(object, *in_order[outer], "f");
    for (int inner = 0; inner < 3; ++inner) {
      CAPTURE(outer, inner);
      CHECK(begins(object, *in_order[inner]) == (inner >= outer));
      CHECK_FALSE(begins_on_another_thread(object, *in_order[inner]));
      const UserCall user;
      CHECK_FALSE(begins(object, *in_order[inner]));
    }
    CHECK_FALSE(begins(object, changed));
    CHECK_FALSE(begins(object, called));
  }
}

TEST_CASE("nothing begins within a use that permits no other") {
  InUse object("thing");
  const InUse::Use use(object, called, "f");
  for (const auto& purpose : {opened, recorded, computed, changed, called}) {
    CHECK_FALSE(begins(object, purpose));
  }
}

TEST_CASE("an object is free after its uses, also when some were refused") {
  InUse object("thing");
  {
    const InUse::Use outer(object, opened, "f");
    {
      const InUse::Use inner(object, computed, "g");
      CHECK_FALSE(begins(object, recorded));
      CHECK(object.is_at_least(Level::computes));
    }
    CHECK(begins(object, recorded));
    CHECK_FALSE(object.is_at_least(Level::records));
  }
  CHECK(begins(object, called));
  CHECK(begins_on_another_thread(object, called));
}

TEST_CASE("a change during a use in which only values change may change values") {
  InUse object("thing");
  const InUse::Use use(object, changed, "f");
  CHECK_NOTHROW(object.require(Level::computes, "g"));
  CHECK_THROWS_AS(object.require(Level::records, "g"), TapeError);
}

TEST_CASE("a use that began in a function of the user belongs to that call") {
  InUse object("thing");
  std::optional<UserCall> user(std::in_place);
  {
    const InUse::Use use(object, opened, "f");
    CHECK(begins(object, recorded));
    const UserCall inner;
    CHECK_FALSE(begins(object, recorded));
  }
  user.reset();
  CHECK(begins(object, called));
}

TEST_CASE("a copy of an object is not in use") {
  InUse object("thing");
  const InUse::Use use(object, called, "f");
  InUse copy(object);
  CHECK(begins(copy, called));
  copy = object;
  CHECK(begins(copy, called));
}

TEST_CASE("the error of an object in use names the function, the object and the use") {
  InUse object("thing");
  const InUse::Use use(object, called, "f");
  const std::string error = error_of([&] { object.require(Level::open, "thing.g"); });
  CHECK_THAT(error, Contains("[thing.g] the thing is in use: it is called"));
  CHECK_THAT(error, Contains("call thing.g before or after that"));
  CHECK_THAT(error, Contains("give each thread a thing of its own"));
  const Where where = Where::current();
  CHECK_THAT(error_of([&] { object.require(Level::open, "g", &where); }),
             Contains("in_use_test.cpp"));
}

TEST_CASE("of the uses that threads begin at the same time, one goes on") {
  InUse object("thing");
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  std::atomic<int> begun = 0;
  const auto work = [&] {
    for (int i = 0; i < 2000; ++i) {
      try {
        const InUse::Use outer(object, opened, "f");
        const InUse::Use inner(object, recorded, "f");
        const int now = ++inside;
        if (now > most) most = now;
        ++begun;
        --inside;
      } catch (const TapeError&) {
      }
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  CHECK(most == 1);
  CHECK(begun > 0);
  CHECK(begins(object, called));
}

TEST_CASE("a use that waits begins after those of other threads") {
  InUse object("thing");
  int counted = 0;
  const auto work = [&] {
    for (int i = 0; i < 500; ++i) {
      const InUse::Use use(object, recorded);
      ++counted;
    }
  };
  std::thread other(work);
  work();
  other.join();
  CHECK(counted == 1000);
}

}  // namespace
}  // namespace palimpsest::in_use_test
