#include "checkpoint/first_fit.h"

#include <map>
#include <set>

#include "checkpoint/occupancy.h"

namespace palimpsest {

namespace {

/// The free space of an arena that grows as needed.
class FreeSpace {
 public:
  /// The lowest hole that fits among the first few, otherwise the tightest one, otherwise the end.
  Bytes take(Bytes bytes) {
    int looked_at = 0;
    for (auto hole = holes_.begin(); hole != holes_.end() && looked_at < 64; ++hole, ++looked_at) {
      if (hole->second >= bytes) return cut(hole, bytes);
    }
    const auto tightest = by_size_.lower_bound({bytes, 0});
    if (tightest != by_size_.end()) return cut(holes_.find(tightest->second), bytes);
    Bytes offset = size_;
    if (!holes_.empty()) {
      const auto last = std::prev(holes_.end());
      if (last->first + last->second == size_) {
        offset = last->first;
        erase(last);
      }
    }
    size_ = offset + bytes;
    return offset;
  }

  void give(Bytes offset, Bytes bytes) {
    auto next = holes_.lower_bound(offset);
    if (next != holes_.end() && next->first == offset + bytes) {
      bytes += next->second;
      next = erase(next);
    }
    if (next != holes_.begin()) {
      const auto previous = std::prev(next);
      if (previous->first + previous->second == offset) {
        offset = previous->first;
        bytes += previous->second;
        erase(previous);
      }
    }
    insert(offset, bytes);
  }

  Bytes size() const { return size_; }

 private:
  using Holes = std::map<Bytes, Bytes>;

  Bytes cut(Holes::iterator hole, Bytes bytes) {
    const auto [offset, size] = *hole;
    erase(hole);
    if (size > bytes) insert(offset + bytes, size - bytes);
    return offset;
  }
  void insert(Bytes offset, Bytes bytes) {
    holes_.emplace(offset, bytes);
    by_size_.emplace(bytes, offset);
  }
  Holes::iterator erase(Holes::iterator hole) {
    by_size_.erase({hole->second, hole->first});
    return holes_.erase(hole);
  }

  Holes holes_;                                // offset, bytes
  std::set<std::pair<Bytes, Bytes>> by_size_;  // bytes, offset
  Bytes size_ = 0;
};

}  // namespace

Bytes place_by_time(std::span<Interval> intervals, std::span<const std::uint32_t> by_end,
                    std::uint32_t steps) {
  FreeSpace staying, passing;
  const auto stays = [&](const Interval& one) { return one.last - one.first > steps; };
  const auto space = [&](const Interval& one) -> FreeSpace& {
    return stays(one) ? staying : passing;
  };
  sweep(
      intervals, by_end,
      [&](std::uint32_t i) {
        intervals[i].offset = space(intervals[i]).take(laid_out(intervals[i].bytes));
      },
      [&](std::uint32_t i) {
        space(intervals[i]).give(intervals[i].offset, laid_out(intervals[i].bytes));
      });
  for (Interval& interval : intervals) {
    if (!stays(interval)) interval.offset += staying.size();
  }
  return staying.size() + passing.size();
}

}  // namespace palimpsest
