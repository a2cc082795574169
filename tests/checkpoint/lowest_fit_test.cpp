#include "checkpoint/lowest_fit.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "checkpoint/occupancy.h"
#include "tests/catch.h"

namespace lowest_fit_test {

using namespace palimpsest;

namespace {

std::vector<Interval> random_intervals(std::uint32_t count, std::uint32_t longest,
                                       std::mt19937& random) {
  std::vector<Interval> intervals;
  for (std::uint32_t first = 0; first < count; ++first) {
    const auto last = static_cast<std::uint32_t>(first + random() % longest);
    intervals.push_back({0, first, last, static_cast<Bytes>(1 + random() % 1000)});
  }
  return intervals;
}

/// Tries offset 0 and the end of every placed interval.
Bytes naive_lowest(const std::vector<Interval>& intervals, const std::vector<bool>& placed,
                   const Interval& one) {
  const auto meets = [&](std::size_t j) {
    return placed[j] && intervals[j].first <= one.last && one.first <= intervals[j].last;
  };
  const auto end = [&](std::size_t j) {
    return intervals[j].offset + laid_out(intervals[j].bytes);
  };
  std::vector<Bytes> offsets{0};
  for (std::size_t j = 0; j < intervals.size(); ++j) {
    if (meets(j)) offsets.push_back(end(j));
  }
  std::sort(offsets.begin(), offsets.end());
  return *std::find_if(offsets.begin(), offsets.end(), [&](Bytes offset) {
    for (std::size_t j = 0; j < intervals.size(); ++j) {
      const bool apart = end(j) <= offset || offset + laid_out(one.bytes) <= intervals[j].offset;
      if (meets(j) && !apart) return false;
    }
    return true;
  });
}

Bytes most_occupied(const std::vector<Interval>& intervals) {
  Bytes most = 0;
  for (const Interval& at : intervals) {  // occupation peaks where an interval begins
    Bytes occupied = 0;
    for (const Interval& one : intervals) {
      if (one.first <= at.first && at.first <= one.last) occupied += laid_out(one.bytes);
    }
    most = std::max(most, occupied);
  }
  return most;
}

}  // namespace

TEST_CASE("lowest fit: every interval lies as low as those before it allow") {
  struct Row {
    const char* what;
    std::uint32_t count, longest;
  };
  for (const Row& row :
       {Row{"one", 1, 1}, Row{"few", 70, 20}, Row{"all at once", 200, 1000},
        Row{"many that are short", 3000, 5}, Row{"many, some of them long", 2000, 50}}) {
    INFO(row.what);
    std::mt19937 random(row.count);
    std::vector<Interval> intervals = random_intervals(row.count, row.longest, random);
    std::vector<std::uint32_t> order(intervals.size());
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), random);
    LowestFit fit(intervals, in_order_of_end(intervals));
    const LowestFit::Taken taken = fit.place(order);

    std::vector<bool> placed(intervals.size());
    LowestFit::Taken expected;
    std::size_t wrong = 0;
    for (const std::uint32_t i : order) {
      wrong += intervals[i].offset != naive_lowest(intervals, placed, intervals[i]);
      placed[i] = true;
      const Bytes end = intervals[i].offset + laid_out(intervals[i].bytes);
      expected.size = std::max(expected.size, end);
      expected.above += std::max<Bytes>(end - fit.bound(), 0);
    }
    CHECK(wrong == 0);
    CHECK(taken.size == expected.size);
    CHECK(taken.above == expected.above);
    CHECK(fit.bound() == most_occupied(intervals));
  }
}

TEST_CASE("lowest fit: a placement that is given up leaves the others where they were") {
  for (const std::uint32_t count : {200u, 3000u}) {  // with a linear scan, and with an index
    INFO(count);
    std::mt19937 random(count);
    std::vector<Interval> intervals = random_intervals(count, count == 200 ? 20 : 5, random);
    std::vector<std::uint32_t> order(intervals.size());
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), random);
    LowestFit fit(intervals, in_order_of_end(intervals));
    const LowestFit::Taken all = fit.place(order);
    REQUIRE(all.above > 0);
    const std::vector<Interval> placed = intervals;
    constexpr Bytes nowhere = -1;
    for (Interval& interval : intervals) interval.offset = nowhere;
    LowestFit::Taken seen;
    const LowestFit::Taken taken = fit.place(order, [&](const LowestFit::Taken& so_far) {
      seen = so_far;
      return so_far.above > all.above / 4;
    });
    CHECK(taken.above == seen.above);
    CHECK(taken.above > all.above / 4);
    CHECK(taken.size <= all.size);
    const auto is_placed = [&](std::uint32_t i) { return intervals[i].offset != nowhere; };
    const auto rest = std::ranges::find_if_not(order, is_placed);
    CHECK(rest != order.end());
    CHECK(std::none_of(rest, order.end(), is_placed));
    CHECK(std::all_of(order.begin(), rest,
                      [&](std::uint32_t i) { return intervals[i].offset == placed[i].offset; }));
  }
}

}  // namespace lowest_fit_test
