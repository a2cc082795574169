#pragma once

#include <span>
#include <vector>

#include "checkpoint/layout.h"

namespace palimpsest {

/// Places intervals one after the other, each as low as those placed before it allow.
class LowestFit {
 public:
  /// `intervals` are in order of `first` and get their offsets; `by_end` has them in order of
  /// `last`.
  LowestFit(std::span<Interval> intervals, std::span<const std::uint32_t> by_end);

  /// Most bytes occupied at once: no placement takes less.
  Bytes bound() const { return bound_; }
  /// Seconds that one placement takes, roughly.
  double seconds() const;

  /// Places all intervals in an order given; the bytes they take.
  Bytes place(std::span<const std::uint32_t> order);

 private:
  double by_scan() const;
  double by_index() const;
  Bytes place_by_scan(std::span<const std::uint32_t> order);
  Bytes place_by_index(std::span<const std::uint32_t> order);

  std::span<Interval> intervals_;
  std::vector<std::uint32_t> end_;  // by interval, the first later one that begins after its end
  std::uint64_t pairs_ = 0;         // of intervals that meet in time
  Bytes bound_ = 0;
};

}  // namespace palimpsest
