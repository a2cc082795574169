#pragma once

#include <chrono>
#include <vector>

#include "checkpoint/arena.h"
#include "strategy/event.h"
#include "strategy/fusion/lowered.h"
#include "strategy/program.h"

namespace palimpsest {

/// Carries a plan out on a tape: the only place where planned values are computed.
class Executor {
 public:
  /// Values lie in `arena`, those that are present copied there first, or each in storage of its
  /// own when `arena` is null; either way `meter` counts them.
  Executor(Tape& tape, const Lowered& lowered, const Plan& plan, const Program& program,
           Meter meter, const Arena* arena);

  /// Runs every step on at most `threads` threads, 1 in the order of the schedule. Afterwards the
  /// targets are present on the tape, and of the other values only leaves. When a kernel throws, or
  /// `anomaly` is set and one makes a NaN or infinity, the run stops, what was present and neither
  /// dropped nor written since is present again, and the exception is passed on.
  void run(int threads, bool anomaly);

  /// Most bytes reserved, and live, at the meter during the run, without what others hold there.
  Bytes peak_reserved() const { return peak_reserved_; }
  Bytes peak_live() const { return peak_live_; }

  const std::vector<Event>& events() const { return events_; }

 private:
  void run_serially();
  void run_in_parallel();
  bool worth_a_task(std::uint32_t step) const;
  void run_step(std::uint32_t step);
  void compute(std::uint32_t step, NodeId node);
  Buffer make(std::uint32_t interval) const;
  void take_present();
  void move_into_arena();
  void measure_others();
  Bytes live_bytes() const;
  void restore(bool finished);

  Tape& tape_;
  const Lowered& lowered_;
  const Graph& graph_;
  const Plan& plan_;
  const Program& program_;
  Meter meter_;
  const Arena* arena_;
  int threads_ = 1;
  bool anomaly_ = false;
  Bytes others_reserved_ = 0;
  Bytes others_live_ = 0;
  Bytes peak_reserved_ = 0;
  Bytes peak_live_ = 0;
  std::vector<Buffer> storages_;      // by root value
  std::vector<char> written_;         // by root value, whether a step began to write it
  std::vector<std::uint32_t> event_;  // of each step
  std::vector<Event> events_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace palimpsest
