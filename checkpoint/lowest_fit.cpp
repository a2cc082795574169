#include "checkpoint/lowest_fit.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "checkpoint/occupancy.h"

namespace palimpsest {

namespace {

struct Block {
  Bytes begin, end;
};

/// The lowest gap between blocks that are visited in order of offset.
class Gap {
 public:
  explicit Gap(Bytes bytes) : bytes_(bytes) {}

  bool found_below(const Block& block) {
    if (block.begin - offset_ >= bytes_) return true;
    offset_ = std::max(offset_, block.end);
    return false;
  }
  Bytes offset() const { return offset_; }
  Bytes end() const { return offset_ + bytes_; }

 private:
  Bytes bytes_;
  Bytes offset_ = 0;
};

/// Placed intervals, in order of offset.
class Row {
 public:
  explicit Row(std::size_t most) {
    first_.reserve(most);
    last_.reserve(most);
    blocks_.reserve(most);
  }

  /// Puts an interval into the lowest gap; returns its end.
  Bytes put(Interval& interval) {
    Gap gap(laid_out(interval.bytes));
    static_assert(std::endian::native == std::endian::little, "the first byte is the lowest");
    std::array<std::uint8_t, 64> meets;
    bool found = false;
    for (std::size_t from = 0; from < blocks_.size() && !found; from += meets.size()) {
      find_meeting(interval, from, meets);
      for (std::size_t word = 0; word < meets.size() && !found; word += 8) {
        std::uint64_t meet;  // eight at once: most do not overlap, unpredictably
        std::memcpy(&meet, meets.data() + word, 8);
        for (; meet != 0 && !found; meet &= meet - 1) {
          found = gap.found_below(
              blocks_[from + word + static_cast<std::size_t>(std::countr_zero(meet)) / 8]);
        }
      }
    }
    interval.offset = gap.offset();
    insert(interval, {gap.offset(), gap.end()});
    return gap.end();
  }

 private:
  /// Finds which of those `from` on overlap an interval in time.
  void find_meeting(const Interval& interval, std::size_t from,
                    std::array<std::uint8_t, 64>& meets) const {
    const std::size_t count = std::min(meets.size(), blocks_.size() - from);
    for (std::size_t k = 0; k < count; ++k) {
      const std::uint8_t begins = first_[from + k] <= interval.last;
      const std::uint8_t goes_on = interval.first <= last_[from + k];
      meets[k] = begins & goes_on;
    }
    std::fill(meets.begin() + static_cast<std::ptrdiff_t>(count), meets.end(), std::uint8_t{0});
  }

  void insert(const Interval& interval, Block block) {
    const auto at = std::upper_bound(blocks_.begin(), blocks_.end(), block,
                                     [](auto& a, auto& b) { return a.begin < b.begin; }) -
                    blocks_.begin();
    first_.insert(first_.begin() + at, interval.first);
    last_.insert(last_.begin() + at, interval.last);
    blocks_.insert(blocks_.begin() + at, block);
  }

  std::vector<std::uint32_t> first_, last_;  // steps
  std::vector<Block> blocks_;
};

/// Placed intervals by the offset where they begin. Few offsets are distinct, since intervals that
/// follow each other begin where earlier ones did; so marking these replaces sorting blocks.
class Shelves {
 public:
  explicit Shelves(std::size_t count) : shelf_(count), end_(count) {}

  /// The lowest gap of `bytes` between some of the placed intervals.
  Gap gap_between(std::span<const std::uint32_t> intervals, Bytes bytes) {
    for (const std::uint32_t j : intervals) {
      const std::uint32_t shelf = shelf_[j];
      marked_[shelf / 64] |= std::uint64_t{1} << shelf % 64;
      highest_[shelf] = std::max(highest_[shelf], end_[j]);
    }
    Gap gap(bytes);
    bool found = false;
    for (std::size_t word = 0; word < marked_.size(); ++word) {
      for (std::uint64_t& rest = marked_[word]; rest != 0; rest &= rest - 1) {
        const std::size_t shelf = word * 64 + static_cast<std::size_t>(std::countr_zero(rest));
        const Bytes end = std::exchange(highest_[shelf], 0);
        found = found || gap.found_below({begins_[shelf], end});
      }
    }
    return gap;
  }

  void put(std::uint32_t interval, Block block) {
    const auto at = std::ranges::lower_bound(begins_, block.begin);
    const auto shelf = static_cast<std::uint32_t>(at - begins_.begin());
    if (at == begins_.end() || *at != block.begin) {
      begins_.insert(at, block.begin);
      highest_.push_back(0);
      marked_.resize((begins_.size() + 63) / 64);
      for (std::uint32_t& each : shelf_) each += each >= shelf ? 1 : 0;
    }
    shelf_[interval] = shelf;
    end_[interval] = block.end;
  }

 private:
  std::vector<std::uint32_t> shelf_;   // by interval
  std::vector<Bytes> end_;             // by interval
  std::vector<Bytes> begins_;          // by shelf, ascending
  std::vector<Bytes> highest_;         // by shelf: the last end of what is marked
  std::vector<std::uint64_t> marked_;  // a bit per shelf
};

}  // namespace

LowestFit::LowestFit(std::span<Interval> intervals, std::span<const std::uint32_t> by_end)
    : intervals_(intervals), end_(intervals.size()) {
  Bytes live = 0;
  std::uint32_t started = 0;
  std::uint32_t stopped = 0;
  sweep(
      intervals, by_end,
      [&](std::uint32_t i) {
        ++started;
        pairs_ += started - 1 - stopped;
        bound_ = std::max(bound_, live += laid_out(intervals[i].bytes));
      },
      [&](std::uint32_t i) {
        ++stopped;
        end_[i] = started;
        live -= laid_out(intervals[i].bytes);
      });
  for (std::uint32_t& end : end_) {
    if (end == 0) end = started;
  }
}

double LowestFit::by_scan() const {
  const double count = static_cast<double>(intervals_.size());
  return 0.3e-9 * count * count + 1e-7 * count;
}

double LowestFit::by_index() const {
  return 1e-8 * static_cast<double>(pairs_) + 3e-7 * static_cast<double>(intervals_.size());
}

double LowestFit::seconds() const { return std::min(by_scan(), by_index()); }

LowestFit::Taken LowestFit::place(std::span<const std::uint32_t> order, const Stop& stop) {
  return by_scan() < by_index() ? place_by_scan(order, stop) : place_by_index(order, stop);
}

/// Counts an interval that ends at `end`. False when the placement should stop.
bool LowestFit::take(Bytes end, const Stop& stop, Taken& taken) const {
  taken.size = std::max(taken.size, end);
  if (end <= bound_) return true;
  taken.above += end - bound_;
  return !stop || !stop(taken);
}

/// Compares with all intervals placed so far.
LowestFit::Taken LowestFit::place_by_scan(std::span<const std::uint32_t> order, const Stop& stop) {
  Row row(order.size());
  Taken taken;
  for (const std::uint32_t i : order) {
    if (!take(row.put(intervals_[i]), stop, taken)) break;
  }
  return taken;
}

/// Records which intervals are live at the start of each stretch of the row.
void LowestFit::find_neighbours() {
  if (!there_from_.empty()) return;
  std::vector<std::uint32_t> there;
  for (std::uint32_t i = 0; i < end_.size(); ++i) {
    if (i % stretch == 0) {
      std::erase_if(there, [&](std::uint32_t j) { return end_[j] <= i; });
      there_from_.push_back(static_cast<std::uint32_t>(there_.size()));
      there_.insert(there_.end(), there.begin(), there.end());
    }
    there.push_back(i);
  }
  there_from_.push_back(static_cast<std::uint32_t>(there_.size()));
}

/// Compares only with intervals that overlap in time. Interval i occupies [i, end_[i]) of the row
/// of intervals. Two overlap in time exactly when these ranges do.
LowestFit::Taken LowestFit::place_by_index(std::span<const std::uint32_t> order, const Stop& stop) {
  find_neighbours();
  const std::size_t count = intervals_.size();
  std::vector<std::uint32_t> placed_end(count);  // 0 for those without a place
  std::vector<std::uint32_t> met(count);
  Shelves shelves(count);
  Taken taken;
  for (const std::uint32_t i : order) {
    std::size_t met_count = 0;
    // Branches would be hard to predict, so each is written and only some are kept.
    const auto add = [&](std::uint32_t j, bool meets) {
      met[met_count] = j;
      met_count += meets;
    };
    const std::uint32_t at = i / stretch;
    for (std::uint32_t k = there_from_[at]; k < there_from_[at + 1]; ++k) {
      add(there_[k], placed_end[there_[k]] > i);
    }
    for (std::uint32_t j = at * stretch; j < i; ++j) add(j, placed_end[j] > i);
    for (std::uint32_t j = i + 1; j < end_[i]; ++j) add(j, placed_end[j] != 0);
    const Gap gap = shelves.gap_between({met.data(), met_count}, laid_out(intervals_[i].bytes));
    intervals_[i].offset = gap.offset();
    if (!take(gap.end(), stop, taken)) break;
    shelves.put(i, {gap.offset(), gap.end()});
    placed_end[i] = end_[i];
  }
  return taken;
}

}  // namespace palimpsest
