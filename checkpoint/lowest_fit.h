#pragma once

#include <functional>
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
  /// A rough upper estimate of the seconds of one placement. Plans depend on it: the longer one
  /// takes, the fewer are tried.
  double seconds() const;

  struct Taken {
    Bytes size = 0;   ///< bytes that the intervals take
    Bytes above = 0;  ///< bytes by which each interval exceeds the bound, summed
  };
  using Stop = std::function<bool(const Taken&)>;

  /// Places all intervals in the given order. After each interval that exceeds the bound, `stop`,
  /// if any, is called with the bytes taken so far. When it returns true, the remaining intervals
  /// stay where they were.
  Taken place(std::span<const std::uint32_t> order, const Stop& stop = {});

 private:
  double by_scan() const;
  double by_index() const;
  Taken place_by_scan(std::span<const std::uint32_t> order, const Stop& stop);
  Taken place_by_index(std::span<const std::uint32_t> order, const Stop& stop);
  void find_neighbours();
  bool take(Bytes end, const Stop& stop, Taken& taken) const;

  std::span<Interval> intervals_;
  std::vector<std::uint32_t> end_;  // by interval: the first later one that begins after its end
  std::uint64_t pairs_ = 0;         // of intervals that overlap in time
  Bytes bound_ = 0;

  static constexpr std::uint32_t stretch = 16;
  std::vector<std::uint32_t> there_;       // intervals that are live when a stretch of them starts
  std::vector<std::uint32_t> there_from_;  // by stretch, where its own are
};

}  // namespace palimpsest
