#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "strategy/base/options.h"
#include "strategy/compile/program_spec.h"
#include "strategy/loops/kept_values.h"
#include "strategy/loops/loop_operation.h"

namespace palimpsest {

/// True if there are more threads than backward parts, which may run in parallel.
bool leaves_threads_idle(std::span<const RecordedLoop> loops, int threads);

/// The loops of a tape whose memory a budget decides, and how it is divided.
struct DividedLoops {
  std::span<const RecordedLoop> all;
  std::span<const KeptValues* const> values;  ///< worth keeping, by loop; may be null
  std::span<const std::uint32_t> most;        ///< by loop, snapshots that the planner permits
  std::span<LoopDivision> divisions;          ///< by loop
  std::vector<std::size_t> flexible;          ///< those without a budget of their own
};

/// Searches for the number of states with which the whole program costs least within its budget.
/// The number is the same for all flexible loops. If it is small, the search also tries smaller
/// memory shares for the steps. Sets the divisions of these loops, also on the tape.
class DivisionSearch {
 public:
  /// All arguments must outlive it.
  DivisionSearch(Tape& tape, const ProgramSpec& spec, const RunOptions& options,
                 DividedLoops& loops);

  void run();
  /// A lower bound on the peak of any schedule, whatever the division is.
  Bytes peak_bound();

 private:
  std::uint32_t fitting(std::uint32_t most, Bytes share);
  bool keeps_all(const LoopDivision& division);
  std::uint32_t most_kept() const;
  void keep_values(std::uint32_t snapshots);
  void make_states_ahead(const LoopDivision& division);
  double reversal_seconds() const;
  std::vector<Bytes> shares() const;
  Bytes least_share(std::vector<Bytes> shares) const;
  Bytes share_of(std::size_t loop, Bytes share) const;
  void set(const LoopDivision& division);
  Bytes keep_all_peak(const LoopDivision& division);
  double planned_cost(const LoopDivision& division);

  Tape& tape_;
  const ProgramSpec& spec_;
  const RunOptions& options_;
  DividedLoops& loops_;
  std::vector<std::uint32_t> ahead_;  // by loop
  std::uint32_t most_ = 0;            // snapshots that any flexible loop can use
  Bytes state_bytes_ = 0;             // of one state of each flexible loop
};

}  // namespace palimpsest
