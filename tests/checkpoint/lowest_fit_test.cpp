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

/// Tries offset 0 and the end of every interval that is placed.
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
  for (const Interval& at : intervals) {  // the most begins where one begins
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
  for (const Row& row : {Row{"one", 1, 1}, Row{"few", 70, 20}, Row{"all at once", 200, 1000},
                         Row{"many that are short", 3000, 5}}) {
    INFO(row.what);
    std::mt19937 random(row.count);
    std::vector<Interval> intervals = random_intervals(row.count, row.longest, random);
    std::vector<std::uint32_t> order(intervals.size());
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), random);
    LowestFit fit(intervals, in_order_of_end(intervals));
    const Bytes size = fit.place(order);

    std::vector<bool> placed(intervals.size());
    Bytes highest = 0;
    std::size_t wrong = 0;
    for (const std::uint32_t i : order) {
      wrong += intervals[i].offset != naive_lowest(intervals, placed, intervals[i]);
      placed[i] = true;
      highest = std::max(highest, intervals[i].offset + laid_out(intervals[i].bytes));
    }
    CHECK(wrong == 0);
    CHECK(size == highest);
    CHECK(fit.bound() == most_occupied(intervals));
  }
}

}  // namespace lowest_fit_test
