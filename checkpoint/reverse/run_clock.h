#pragma once

#include <chrono>
#include <ctime>
#include <utility>

namespace palimpsest {

/// When a run reports its progress, adds a record to its journal, and stops.
class RunClock {
 public:
  using Seconds = std::chrono::duration<double>;

  /// Whether the system's coarse clock, which is cheap to read, has gone on since the last call
  /// that returned true. It does so every few milliseconds. True the first time.
  bool has_ticked() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    if (now.tv_nsec == tick_.tv_nsec && now.tv_sec == tick_.tv_sec) return false;
    tick_ = now;
    return true;
  }
  double seconds() const { return Seconds(now() - start_).count(); }
  /// Seconds since the last look.
  double look() {
    const Time before = std::exchange(looked_, now());
    return Seconds(looked_ - before).count();
  }
  /// Whether so much time has passed since the last call that returned true.
  bool is_time_to_show(Seconds every) {
    if (looked_ - shown_ < every) return false;
    shown_ = looked_;
    return true;
  }
  /// Whether so much time has passed since the last record, and a hundred times what it took.
  bool is_time_to_record(Seconds every) const {
    return looked_ - recorded_ >= every &&
           (every == Seconds(0) || looked_ - recorded_ >= 100 * cost_);
  }
  template <class F>
  void time_record(F f) {
    const Time before = now();
    f();
    recorded_ = now();
    cost_ = recorded_ - before;
  }

 private:
  using Time = std::chrono::steady_clock::time_point;
  static Time now() { return std::chrono::steady_clock::now(); }

  Time start_ = now();
  Time looked_ = start_;
  Time shown_ = start_;
  Time recorded_ = start_;
  Seconds cost_{0};
  timespec tick_{};
};

}  // namespace palimpsest
