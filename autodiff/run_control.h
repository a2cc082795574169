#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <utility>

#include "autodiff/export.h"
#include "autodiff/require_function.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// How far a run is.
struct RunProgress {
  std::uint64_t steps_done = 0;  ///< of the schedule, including recomputed and dropped values
  std::uint64_t steps = 0;       ///< in the schedule
  std::uint64_t loop_step = 0;   ///< of the loop that runs now; it may be repeated or reversed
  std::uint64_t loop_steps = 0;  ///< of that loop; 0 outside of loops and where it is not known
};

using ProgressFunction = std::function<void(const RunProgress&)>;

/// The function of `RunOptions::progress`, as in `.progress = on_progress([&](const RunProgress& p)
/// { … })`. Throws `ArgumentError` for an empty function.
inline std::shared_ptr<const ProgressFunction> on_progress(ProgressFunction function,
                                                           Where where = Where::current()) {
  detail::require_function(function, "on_progress", "the argument", "takes a RunProgress", where);
  return std::make_shared<const ProgressFunction>(std::move(function));
}

/// Stops one run, and reports how far it is. Members are thread-safe.
class RunControl {
 public:
  RunControl(std::stop_token stop, std::shared_ptr<const ProgressFunction> progress,
             std::uint64_t steps)
      : stop_(std::move(stop)), progress_(std::move(progress)), steps_(steps) {}

  /// Throws `StoppedError` if a stop was requested.
  void check() const {
    if (stop_.stop_requested()) throw_stopped();
  }
  const std::stop_token& stop_token() const { return stop_; }
  /// A step of the schedule has ended.
  void step_done();
  /// A step of a loop begins.
  void loop_step(std::uint64_t step, std::uint64_t steps);

  /// Throws the `StoppedError` of `check`.
  [[noreturn]] static void throw_stopped();

 private:
  void report(std::uint64_t loop_step, std::uint64_t loop_steps);

  std::stop_token stop_;
  std::shared_ptr<const ProgressFunction> progress_;
  std::uint64_t steps_;
  std::atomic<std::uint64_t> done_ = 0;
  std::mutex mutex_;
};

}  // namespace palimpsest
