#pragma once

#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "autodiff/export.h"
#include "autodiff/tape.h"
#include "checkpoint/machine.h"
#include "checkpoint/plan.h"
#include "strategy/base/event.h"
#include "strategy/base/options.h"
#include "strategy/base/svg.h"

namespace palimpsest PALIMPSEST_EXPORT {

class Explanation;

/// The result of a run, predicted and measured: bytes, time and recomputation. A value type, which
/// stays valid after the tape is destroyed.
struct Report {
  std::string planner;
  std::string kernel_level;  ///< kernel variants, which may affect bits: `v4`, `v4+onednn`
  int threads = 1;
  std::string thread_problem;  ///< why there are fewer threads than requested; empty otherwise
  std::string precision;       ///< of floating values, such as `mixed bf16`; empty if as recorded
  double loss_scale = 1;       ///< of an `Execution` in mixed f16
  bool overflowed = false;     ///< some gradient is not finite; skip the step
  int replicas = 1;            ///< program instances that ran at once; peaks are their sum
  int micro_batches = 1;       ///< run in sequence by each replica
  Bytes budget = unlimited;
  AllocationPolicy memory = AllocationPolicy::minimal_peak;
  std::uint64_t allocations = 0;  ///< allocations from the system, except for the arena
  std::uint32_t cached = 0;       ///< values reused from the previous run
  Bytes cached_bytes = 0;         ///< kept for the next run; part of the peaks
  Bytes keep_all_peak = 0;        ///< approximate bytes of a run that recomputes nothing
  Bytes predicted_peak = 0;       ///< most bytes that the plan takes
  Bytes measured_peak = 0;        ///< highest byte occupied in an arena, or most bytes held
  Bytes predicted_live_peak = 0;  ///< most bytes live at once, in the schedule's order
  Bytes measured_live_peak = 0;   ///< most bytes live at once
  Bytes resident = 0;             ///< of the process after the run, if profiled
  Bytes tape_metadata = 0;        ///< of the tape itself, without attributes
  Bytes plan_cache = 0;           ///< approximate bytes of cached programs and plans
  std::uint32_t computed = 0;     ///< runs of nodes; a fused group is one node
  std::uint32_t recomputed = 0;   ///< of these, repeated runs of a node
  std::uint32_t common_subexpressions = 0;  ///< removed nodes: these, and identities such as x·1
  std::uint32_t folded_constants = 0;       ///< nodes folded to constants before the run
  std::uint32_t groups = 0;                 ///< fused groups of operations
  /// Machine code of the program and of steps of its loops, at the time of the report. It serves
  /// the next run at the latest.
  struct Native {
    std::uint32_t groups = 0;  ///< fused groups that ran as machine code
    std::uint32_t steps = 0;   ///< programs of loop steps that ran as a single function
    double share = 0;          ///< of the predicted time of the run's own program, in native groups
    double compile_seconds = 0;  ///< of the compiler, for retired code too; 0 if cached on disk
    Bytes code = 0;              ///< of the code in memory, with retired code. Counts as metadata.
    /// Least times of runs of the run's own program, native and interpreted, which automatic mode
    /// compares; 0 before there is code. The faster kind serves.
    double seconds = 0;
    double interpreted_seconds = 0;
    /// Why there is none, if it was requested, that it was slower, or how many groups have none.
    std::string problem;
  };
  Native native;
  /// Extra work as a fraction: predicted, as `Plan::compute_overhead`. For an `Execution` that
  /// computes while it records: the work of repeated nodes relative to that of all nodes once.
  double compute_overhead = 0;

  bool plan_reused = false;             ///< from an earlier run of the same structure
  std::uint32_t plan_improvements = 0;  ///< better plans found while this one served
  double planning_seconds = 0;
  /// Seconds of the run without planning. A `Runner` whose runs take less than 10 µs gives the time
  /// of one of its last 16 runs.
  double run_seconds = 0;

  double kernel_seconds = 0;  ///< sum over threads, if profiled

  /// One line about the plan: planner, peak, share of keep-all, extra work.
  std::string summary() const;

  /// The plan and the graph that was planned, which the report shares with the compiled program.
  /// Of one part, where a batch has several. Null where no single plan covers the run.
  std::shared_ptr<const Explanation> explanation;

  /// Explains the peak, as text: what is live then and why, what is recomputed, what other budgets
  /// would cost, and what determines the smallest feasible one. Needs no profile and no tape. Plans
  /// within a few other budgets, which takes as long as planning does.
  std::string explain() const;
  /// Writes these answers as one self-contained HTML page, which shows live bytes over time, what
  /// is live during each step, and lanes for stages and devices. Throws `FileError`.
  void write_html(const std::string& path) const;

  /// One compute step. The entries are in the order of the schedule. Empty unless
  /// `RunOptions::profile`.
  struct Step {
    std::string operation;
    std::string name;  ///< the node's scope and name; empty without either
    std::string work;  ///< operation and bytes of all operands: the key in a `Profile`
    Event event;
    bool recomputed = false;
    Cost cost = {};            ///< floating-point operations, and bytes read and written
    DType dtype = DType::f32;  ///< in which floating values were computed
  };
  std::vector<Step> steps;

  /// A loop that was differentiated in the run.
  struct Loop {
    std::string name;          ///< scope and name of its node, or else its kind
    std::uint32_t steps = 0;   ///< of a `while_loop`, the number that the run took
    std::uint32_t states = 0;  ///< held at a time, including the first one
    /// Tensors of its state, and the indices of those that a held state has: derivatives of its
    /// steps read them, or steps make these from them.
    std::uint32_t components = 0;
    std::vector<std::uint32_t> held_components;
    /// Last steps that keep the values that their derivative reads. They are not run again.
    std::uint32_t kept_steps = 0;
    /// Steps run, including those run to be differentiated. Counted for a `while_loop`; for others
    /// as its schedule says.
    std::uint64_t forward_steps = 0;
    /// Of these, the steps that a run without a budget does not take.
    std::uint64_t recomputed_steps = 0;
    /// States that its schedule writes to disk and reads. They include the first one, which is not
    /// really transferred. For a `while_loop`, those of the run.
    std::uint64_t disk_writes = 0;
    std::uint64_t disk_reads = 0;
    Bytes step_budget = 0;  ///< for planning a step; 0 where a step keeps all it makes
    /// Most states that another thread makes while the same number of steps is reversed.
    std::uint32_t ahead = 0;
    bool recorded_again = false;  ///< every step was recorded separately
    /// With `LoopOptions::resume`: records of journals, parts of the loop that continued a journal,
    /// and damaged states that were made again.
    std::uint64_t records = 0;
    std::uint64_t resumed = 0;
    std::uint64_t states_repaired = 0;

    /// The states that it holds, as text, and their components if these are not all.
    std::string describe_states() const;
  };
  std::vector<Loop> loops;

  /// A stage of a pipeline; empty for other runs.
  struct Stage {
    double forward_seconds = 0;  ///< per micro-batch, by the planners' machine
    double backward_seconds = 0;
    Bytes incoming = 0;           ///< bytes of values that cross the stage's begin, per micro-batch
    int in_flight = 0;            ///< most micro-batches at a time, forward but not backward
    bool computes_again = false;  ///< runs forward again from its inputs, for its adjoints
    Bytes budget = unlimited;     ///< its share of the run's budget
    Bytes predicted_peak = 0;     ///< includes values for other stages and its share of sums
    Bytes measured_peak = 0;
  };
  std::vector<Stage> stages;

  /// A micro-batch in a stage.
  struct StageTask {
    int stage = 0;
    int micro_batch = 0;
    bool backward = false;
    std::int64_t start = 0;  ///< nanoseconds since the run began
    std::int64_t end = 0;
  };
  /// The tasks of each stage, stage by stage, in order.
  std::vector<StageTask> timeline;
  /// The fraction of the time from the first task to the last in which a stage was idle, on average
  /// over stages. 0 for a run without stages.
  double idle() const;

  /// A device of a model-parallel run; empty for other runs.
  struct Device {
    double seconds = 0;           ///< of its work on one thread, by the planners' machine
    Bytes incoming = 0;           ///< bytes that come from other devices
    int numa_node = -1;           ///< node of its threads and memory; −1 on a machine with one
    bool computes_again = false;  ///< runs its forward part again, while adjoints wait
    Bytes budget = unlimited;
    Bytes predicted_peak = 0;
    Bytes measured_peak = 0;
  };
  std::vector<Device> devices;

  /// A piece of the program that ran on a device, or a transfer of its results to another device.
  struct DeviceTask {
    int device = 0;          ///< the receiving device for a transfer
    int sender = -1;         ///< the sending device of a transfer
    Bytes bytes = 0;         ///< of a transfer
    std::int64_t start = 0;  ///< nanoseconds since the run began
    std::int64_t end = 0;
  };
  /// In a topological order.
  std::vector<DeviceTask> device_tasks;

  /// Time by operation and dtype, longest first.
  struct OperationTime {
    std::string operation;
    std::uint32_t calls = 0;
    double seconds = 0;
    Cost cost = {};  ///< of all calls together
    DType dtype = DType::f32;
    /// The fraction of the peak rate of one thread of a machine (roofline model: Williams et al.,
    /// 2009). The peak is that of its products in this dtype, or that of the memory or cache that
    /// holds a call's operands, whichever takes longer. More than 1 where threads share a call.
    double of_peak(const Machine& machine) const;
  };
  std::vector<OperationTime> by_operation() const;
  /// A table of all operations: time, calls, flops and bytes per second, and the fraction of the
  /// peak rate of one thread of `machine`. The last row is the run. Empty unless the run was
  /// profiled. `measured_machine()` is the current machine.
  std::string by_operation(const Machine& machine) const;

  // These throw `ArgumentError` when the run was not profiled. The trace does so only if there are
  // no stages and devices either.

  /// Live bytes over time: x in milliseconds, y in MiB.
  Chart::Curve live_bytes_curve() const;
  /// Draws live bytes over time with budget and predicted peak. Throws `FileError`.
  void write_svg(const std::string& path) const;
  /// Writes the steps, and the tasks of stages or devices, as a Chrome trace (chrome://tracing,
  /// Perfetto). It has a row for each thread, stage or device. Throws `FileError`.
  void write_chrome_trace(const std::string& path) const;
};

/// Prints a table of the most important figures.
std::ostream& operator<<(std::ostream& stream, const Report& report);

/// Resident size of this process, in bytes; 0 where the system does not report it.
Bytes resident_size();

}  // namespace palimpsest
