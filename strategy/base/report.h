#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "autodiff/tape.h"
#include "checkpoint/machine.h"
#include "checkpoint/plan.h"
#include "strategy/base/event.h"
#include "strategy/base/options.h"
#include "strategy/base/svg.h"

namespace palimpsest {

/// What a run did: predicted and measured, on bytes, time and recomputation. A value; it stays
/// readable when the tape is gone.
struct Report {
  std::string planner;
  std::string kernel_level;  ///< of the kernels, with which bits may change: `v4`, `v4+onednn`
  int threads = 1;
  /// Floating values were computed in, as `mixed bf16`; empty: as they were recorded.
  std::string precision;
  double loss_scale = 1;    ///< of an `Execution` in mixed f16
  bool overflowed = false;  ///< then gradients are no numbers, and the step is to be left out
  int replicas = 1;         ///< of the program that ran at once; peaks are of all together
  int micro_batches = 1;    ///< that each ran one after the other
  Bytes budget = unlimited;
  MemoryHandling memory = MemoryHandling::minimal_peak;
  std::uint64_t allocations = 0;  ///< times the run took storage from the system, but for its block
  std::uint32_t cached = 0;       ///< values taken from the run before
  Bytes cached_bytes = 0;         ///< kept for the next run, of the peaks
  Bytes keep_all_peak = 0;        ///< bytes the run would take recomputing nothing, about
  Bytes predicted_peak = 0;       ///< bytes the plan takes at most
  Bytes measured_peak = 0;        ///< end of the highest byte occupied, or most bytes held
  Bytes predicted_live_peak = 0;  ///< most bytes live at once in the order of the schedule
  Bytes measured_live_peak = 0;   ///< most bytes live at once
  Bytes resident = 0;             ///< of the process after the run, when profiled
  Bytes tape_metadata = 0;        ///< bytes of the tape itself, attributes not counted
  Bytes plan_cache = 0;           ///< of programs and plans kept to be run again, about
  std::uint32_t computed = 0;     ///< nodes run
  std::uint32_t recomputed = 0;   ///< of those, not for the first time
  std::uint32_t merged = 0;       ///< nodes not run, since others make the same
  std::uint32_t folded = 0;       ///< nodes that became numbers, known before the run
  std::uint32_t groups = 0;       ///< of operations that run as one
  /// Predicted, as `Plan::compute_overhead`. Of an `Execution` that computes while
  /// it records: the work of nodes that were computed before, over that of all nodes once.
  double compute_overhead = 0;
  bool plan_reused = false;             ///< planned in an earlier run of the same structure
  std::uint32_t plan_improvements = 0;  ///< better plans found while this one served
  double planning_seconds = 0;
  /// Of a `Runner` whose runs take less than 10 µs, that of one of the last 16.
  double run_seconds = 0;
  double kernel_seconds = 0;  ///< sum over threads, when profiled

  /// One line about the plan: planner, peak, share of keep-all, extra work.
  std::string summary() const;

  /// One entry a compute step, in the order of the schedule; none unless `RunOptions::profile`.
  struct Step {
    std::string operation;
    std::string name;  ///< the node's scope and name; empty without either
    std::string work;  ///< operation and bytes of all operands: what a `Profile` knows it by
    Event event;
    bool recomputed = false;
    Cost cost = {};            ///< floating-point operations, and bytes read and written
    DType dtype = DType::f32;  ///< computed in, of floating ones
  };
  std::vector<Step> steps;

  /// A loop that was differentiated in the run.
  struct Loop {
    std::string name;          ///< the scope and name of its node, or what it is
    std::uint32_t steps = 0;   ///< of a `while_loop`, as many as the run took
    std::uint32_t states = 0;  ///< held at a time, the first one among them
    /// Steps run, forward and, with a tape, to be differentiated: of a `while_loop` counted, of
    /// others by its schedule.
    std::uint64_t forward_steps = 0;
    /// States that its schedule writes to disk and reads, the first one, which need not be, among
    /// them; of a `while_loop` those that the run did.
    std::uint64_t disk_writes = 0;
    std::uint64_t disk_reads = 0;
    Bytes step_budget = 0;  ///< that a step was planned in; 0 where it keeps all it makes
    /// Most states made by another thread while the steps of as many were reversed.
    std::uint32_t ahead = 0;
    bool recorded_again = false;  ///< every step was recorded for itself
  };
  std::vector<Loop> loops;

  /// A stage of a pipeline; none of a run without.
  struct Stage {
    double forward_seconds = 0;  ///< of a micro-batch, by the machine that planners go by
    double backward_seconds = 0;
    Bytes incoming = 0;           ///< of a micro-batch's values that cross the stage's begin
    int in_flight = 0;            ///< most micro-batches at a time, forward but not backward
    bool computes_again = false;  ///< keeps what comes in, and runs forward again for its adjoints
    Bytes budget = unlimited;     ///< its share of that of the run
    Bytes predicted_peak = 0;     ///< what it makes for others and its share of sums among it
    Bytes measured_peak = 0;
  };
  std::vector<Stage> stages;

  /// A micro-batch in a stage.
  struct StageTask {
    int stage = 0;
    int micro_batch = 0;
    bool backward = false;
    std::int64_t start = 0;  ///< in nanoseconds since the run began
    std::int64_t end = 0;
  };
  /// What stages did, stage by stage, in order.
  std::vector<StageTask> timeline;
  /// Of the time from the first task to the last, the part that a stage did nothing in, on average;
  /// 0 of a run without stages.
  double idle() const;

  /// A device of a model-parallel run; none of a run without.
  struct Device {
    double seconds = 0;  ///< of its work on one thread, by the machine that planners go by
    Bytes incoming = 0;  ///< that come from other devices
    int numa_node = -1;  ///< that its threads and its memory are on; −1 on a machine with one
    bool computes_again = false;  ///< its forward part, for adjoints that wait for other devices
    Bytes budget = unlimited;
    Bytes predicted_peak = 0;
    Bytes measured_peak = 0;
  };
  std::vector<Device> devices;

  /// A piece of the program that ran on a device, or what it made brought to another one.
  struct DeviceTask {
    int device = 0;          ///< of a transfer, that it goes to
    int sender = -1;         ///< of a transfer
    Bytes bytes = 0;         ///< of a transfer
    std::int64_t start = 0;  ///< in nanoseconds since the run began
    std::int64_t end = 0;
  };
  /// In an order in which none waited for one behind it.
  std::vector<DeviceTask> device_tasks;

  /// Time by operation and type, longest first.
  struct OperationTime {
    std::string operation;
    std::uint32_t calls = 0;
    double seconds = 0;
    Cost cost = {};  ///< of all calls
    DType dtype = DType::f32;
    /// Of what one thread of a machine does at its peak: of its products in this type, or of the
    /// bytes that memory or the cache that holds a call's operands moves, whichever takes longer
    /// (Williams et al., 2009). More than 1 where threads share a call.
    double of_peak(const Machine& machine) const;
  };
  std::vector<OperationTime> by_operation() const;
  /// A table of all of them: time, calls, flops and bytes a second, and the share of what one
  /// thread of `machine` does at its peak, of each and, last, of the run. Empty unless the run was
  /// profiled. `measured_machine()` is the one at hand.
  std::string by_operation(const Machine& machine) const;

  // These throw `ArgumentError` when the run was not profiled, the trace only where there are no
  // stages and devices either.

  /// Live bytes over time: x in milliseconds, y in MiB.
  Chart::Curve live_bytes_curve() const;
  /// Draws live bytes over time with budget and predicted peak. Throws `FileError`.
  void write_svg(const std::string& path) const;
  /// Writes the steps, and what stages or devices did, as a Chrome trace (chrome://tracing,
  /// Perfetto): a row for each thread, stage or device. Throws `FileError`.
  void write_chrome_trace(const std::string& path) const;
};

/// A table of what a user wants to know first.
std::ostream& operator<<(std::ostream& stream, const Report& report);

/// Resident size of this process, in bytes; 0 where the system does not tell.
Bytes resident_size();

}  // namespace palimpsest
