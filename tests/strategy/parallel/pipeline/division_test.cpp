#include "strategy/parallel/pipeline/division.h"

#include <rapidcheck.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "autodiff/error.h"
#include "tests/catch.h"

namespace palimpsest::division_test {
namespace {

using Catch::Matchers::Contains;

/// Tries all ways of cutting. Finds what `divide` chooses, up to ties.
Division best_of_all(const std::vector<double>& seconds, const std::vector<Bytes>& crossing,
                     std::size_t parts) {
  std::vector<double> sums{0};
  for (const double each : seconds) sums.push_back(sums.back() + each);
  std::vector<Division> all;
  std::vector<std::size_t> begins{0};
  const auto cut = [&](auto&& self) -> void {
    if (begins.size() == parts) {
      Division division{.begins = begins};
      for (std::size_t part = 0; part < parts; ++part) {
        const std::size_t end = part + 1 < parts ? begins[part + 1] : seconds.size();
        division.largest = std::max(division.largest, sums[end] - sums[begins[part]]);
        if (part > 0) division.crossing += crossing[begins[part]];
      }
      all.push_back(division);
      return;
    }
    for (std::size_t next = begins.back() + 1; next < seconds.size(); ++next) {
      begins.push_back(next);
      self(self);
      begins.pop_back();
    }
  };
  cut(cut);
  double least = std::numeric_limits<double>::infinity();
  for (const Division& each : all) least = std::min(least, each.largest);
  Division best{.begins = {},
                .largest = std::numeric_limits<double>::infinity(),
                .crossing = std::numeric_limits<Bytes>::max()};
  for (const Division& each : all) {
    if (each.largest > 1.05 * least) continue;
    if (std::tie(each.crossing, each.largest) < std::tie(best.crossing, best.largest)) best = each;
  }
  return best;
}

TEST_CASE("division: as good as the best of all ways of cutting") {
  CHECK(rc::check("any sequence", [] {
    const auto parts = *rc::gen::inRange<std::size_t>(1, 6);
    const auto count = *rc::gen::inRange<std::size_t>(parts, 12);
    std::vector<double> seconds;
    std::vector<Bytes> crossing;
    const int largest = *rc::gen::element(1, 3, 100);
    for (std::size_t i = 0; i < count; ++i) {
      seconds.push_back(*rc::gen::inRange(0, largest + 1) / 7.0);
      crossing.push_back(*rc::gen::inRange<Bytes>(0, *rc::gen::element(2, 1000)));
    }
    const Division found = divide(seconds, crossing, parts);
    const Division best = best_of_all(seconds, crossing, parts);
    RC_ASSERT(found.largest == best.largest);
    RC_ASSERT(found.crossing == best.crossing);
    // The members of the result are consistent.
    RC_ASSERT(found.begins.size() == parts);
    RC_ASSERT(found.begins[0] == 0u);
    std::vector<double> sums{0};
    for (const double each : seconds) sums.push_back(sums.back() + each);
    double largest_part = 0;
    Bytes bytes = 0;
    for (std::size_t part = 0; part < parts; ++part) {
      const std::size_t end = part + 1 < parts ? found.begins[part + 1] : count;
      RC_ASSERT(found.begins[part] < end);
      largest_part = std::max(largest_part, sums[end] - sums[found.begins[part]]);
      if (part > 0) bytes += crossing[found.begins[part]];
    }
    RC_ASSERT(largest_part == found.largest);
    RC_ASSERT(bytes == found.crossing);
  }));
}

TEST_CASE("division: costs come first, bytes among what costs about as much") {
  const std::vector<double> equal(8, 1.0);
  const std::vector<Bytes> some{0, 9, 9, 9, 9, 9, 9, 9};
  CHECK(divide(equal, some, 4).begins == std::vector<std::size_t>{0, 2, 4, 6});
  std::vector<double> many(100, 1.0);
  std::vector<Bytes> dear(100, 1'000);
  dear[52] = 8;  // 4 per cent above one half
  dear[55] = 1;  // 10 per cent above one half
  CHECK(divide(many, dear, 2).begins == std::vector<std::size_t>{0, 52});
  CHECK_THROWS_WITH(divide(equal, some, 9),
                    Contains("[pipeline]") && Contains("8 operations cannot be cut into 9"));
  CHECK_THROWS_AS(divide(equal, some, 0), ArgumentError);
}

TEST_CASE("division: long sequences") {
  std::vector<double> seconds;
  std::vector<Bytes> crossing;
  for (std::size_t i = 0; i < 100'000; ++i) {
    seconds.push_back(1.0 + static_cast<double>(i % 17));
    crossing.push_back(static_cast<Bytes>(i * 7919 % 1'000));
  }
  const Division found = divide(seconds, crossing, 8);
  double all = 0;
  for (const double each : seconds) all += each;
  CHECK(found.largest <= 1.06 * all / 8);
}

}  // namespace
}  // namespace palimpsest::division_test
