#include "benchmarks/claims.h"

#include <cmath>
#include <limits>
#include <sstream>

#include "tests/catch.h"

namespace palimpsest::benchmarks {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST_CASE("what could not be measured does not hide the least of what was") {
  const double costs[] = {nan, 3, 1.5, nan, 2};
  CHECK(least_of(costs) == 1.5);
  const double none[] = {nan, nan};
  CHECK(std::isnan(least_of(none)));
  CHECK(std::isnan(least_of({})));
  const double infinite[] = {std::numeric_limits<double>::infinity()};
  CHECK(std::isinf(least_of(infinite)));
}

TEST_CASE("a claim without a value does not hold, and is told from one that fails") {
  Claims claims;
  claims.at_least("cost", 1, 2, "of ours");
  CHECK(claims.all_hold());
  claims.at_least("peak", 1, nan, "of ours");
  claims.at_most("time", 1, 2, "s");
  CHECK_FALSE(claims.all_hold());
  std::ostringstream text;
  claims.print(text);
  CHECK(text.str().find("holds     cost is at least") != std::string::npos);
  CHECK(text.str().find("NO VALUE  peak is at least") != std::string::npos);
  CHECK(text.str().find("FAILS     time is at most") != std::string::npos);
}

TEST_CASE("claims of what was left out on purpose are left out") {
  const Results results(true);
  Claims claims(true);
  claims.at_most("time", 1, results.seconds("chain/1000"), "s");
  CHECK(claims.all_hold());
  CHECK_THROWS_AS(Results().seconds("chain/1000"), std::out_of_range);
}

}  // namespace
}  // namespace palimpsest::benchmarks
