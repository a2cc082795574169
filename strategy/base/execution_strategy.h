#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autodiff/export.h"
#include "strategy/base/options.h"
#include "strategy/base/precision.h"
#include "strategy/base/stage_limits.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// When recorded nodes are computed.
enum class ExecutionMode : std::uint8_t {
  lazy,    ///< when a result is asked for; planned as a whole
  eager,   ///< as they are recorded
  hybrid,  ///< stage by stage, as `hybrid()` does
};

/// How memory for gradients is handled.
enum class GradientMode : std::uint8_t {
  none,          ///< no gradients: memory as for inference
  automatic,     ///< recomputes what the memory budget, or else the free memory, demands
  full,          ///< recomputes nothing
  checkpointed,  ///< recomputes what a checkpointing setting says
};

/// How work is distributed over threads.
enum class ParallelMode : std::uint8_t {
  none,            ///< nothing: one thread
  automatic,       ///< large operations are split, and independent operations run concurrently
  data_parallel,   ///< shards of the batch, each in a replica of the program
  pipeline,        ///< stages of the program, through which micro-batches flow
  model_parallel,  ///< parts of the program, each on a device of its own
};

/// The names in JSON, such as `lazy`.
std::string_view name_of(ExecutionMode mode);
std::string_view name_of(GradientMode mode);
std::string_view name_of(ParallelMode mode);

/// A device of a model-parallel execution. It has an even share of the threads and memory of its
/// own. On a machine with several NUMA nodes, device d uses node d modulo their number.
struct Device {
  /// Most bytes that the device may take, including the gradients that it computes.
  Bytes memory_budget = unlimited;
  /// Scopes whose nodes, with their adjoints, are placed on the device. Other nodes are placed so
  /// as to take little time, and little memory on every device.
  std::vector<std::string> scopes = {};

  bool operator==(const Device&) const = default;
};

/// All choices of how a program is executed, for `Execution`. They do not change what is computed.
/// A value type: omitted members have their defaults. `require_valid` says which choices go
/// together.
struct ExecutionStrategy {
  ExecutionMode mode = ExecutionMode::lazy;
  StageLimits stage = {};  ///< for a hybrid mode

  /// The precision in which floating values are computed; as recorded when empty. Mixed f16 scales
  /// losses (see `Execution::gradients`).
  std::optional<Precision> precision = {};

  GradientMode gradient = GradientMode::automatic;
  // How gradients are checkpointed. With `GradientMode::checkpointed`, set exactly one of these
  // three and `run.planner`; otherwise none.
  std::optional<std::uint32_t> checkpoint_interval = {};  ///< `Uniform::every`, at least 1
  /// A fraction, in [0, 1], of the bytes that keeping everything takes. Where the smallest budget
  /// found is larger, that one is used.
  std::optional<double> checkpoint_fraction = {};
  /// A name that `planner_named` knows. Planners that recompute only what a budget demands, such as
  /// `auto` and `greedy`, need a budget. Stages of a pipeline are the exception.
  std::string checkpoint_planner = {};

  /// Number of micro-batches that the batch of a gradient is cut into, run in sequence. A pipeline
  /// cuts the batch of a value in the same way.
  int accumulation = 1;

  ParallelMode parallelism = ParallelMode::automatic;
  /// Replicas of a data-parallel mode; 0 is one per thread, but at most one per example.
  int workers = 0;
  /// Stages of a pipeline, 1 to 64. Only a `DistributedExecution` also takes 0: one per rank.
  int stages = 0;
  std::vector<Device> devices = {};  ///< for a model-parallel mode, 1 to 64

  /// Options of every run. Budget and threads are for everything that runs at the same time,
  /// including replicas and gradient sums. Without a budget, a planned run whose `gradient` is
  /// `automatic` or `none` keeps within the free memory. A planner needs `gradient = checkpointed`.
  /// Files have neither planner, machine nor costs.
  RunOptions run = {};

  /// The options for running a program without replicas and micro-batches. Throws as
  /// `require_valid`.
  RunOptions run_options() const;
  /// On this machine, now.
  int thread_count() const;
  int replicas() const;

  /// One line: what differs from the default.
  std::string summary() const;

  bool operator==(const ExecutionStrategy&) const = default;
};

std::ostream& operator<<(std::ostream& stream, const ExecutionStrategy& strategy);

/// Throws `ArgumentError` for numbers out of range, for settings that do not apply to the chosen
/// modes, and for modes that contradict each other.
void require_valid(const ExecutionStrategy& strategy);

/// A strategy as JSON of format `palimpsest-strategy`, version 1. Its members are those of the
/// struct, except that those of `run` stand beside them, some with other names: `memory_budget` is
/// `run.memory_budget`, and `fusion` is `run.fuse`. Omitted members have their defaults.
///
///     {"format": "palimpsest-strategy", "version": 1, "mode": "hybrid", "stage": {"nodes": 100},
///      "gradient": "checkpointed", "checkpoint_fraction": 0.4, "memory": "pooled"}
///
/// Throws `ArgumentError` when the strategy is not valid.
std::string to_json(const ExecutionStrategy& strategy);
/// Parses a strategy from JSON. Throws `FileError`, with the path of the JSON value, for anything
/// that the format or `require_valid` refuses.
ExecutionStrategy strategy_from_json(std::string_view text);

/// Read and write the same JSON as files. Errors also name the file. They throw `FileError` when
/// the file cannot be read or written.
ExecutionStrategy read_strategy(const std::string& path);
void write_strategy(const ExecutionStrategy& strategy, const std::string& path);

/// A strategy with a name.
struct NamedStrategy {
  std::string_view name;
  std::string_view purpose;  ///< one line
  ExecutionStrategy strategy;
};
/// All named strategies: `default`, `training` and so on.
std::span<const NamedStrategy> named_strategies();
/// Throws `ArgumentError` that lists the known names.
const ExecutionStrategy& strategy_named(std::string_view name);

}  // namespace palimpsest
