#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strategy/base/options.h"
#include "strategy/base/precision.h"
#include "strategy/base/stage_limits.h"

namespace palimpsest {

/// When what is recorded is computed.
enum class ExecutionMode : std::uint8_t {
  lazy,    ///< when it is asked for, planned as a whole
  eager,   ///< as it is recorded
  hybrid,  ///< stage by stage, as `hybrid()` does
};

/// What is done for gradients.
enum class GradientMode : std::uint8_t {
  none,          ///< there are none: memory as for inference
  automatic,     ///< computed again is what the memory budget, or the memory that is free, demands
  full,          ///< nothing is computed again
  checkpointed,  ///< something is, as a setting says
};

/// What runs at once.
enum class ParallelMode : std::uint8_t {
  none,            ///< nothing: one thread
  automatic,       ///< parts of large operations, and operations that do not wait for each other
  data_parallel,   ///< shards of the batch, each in a replica of the program
  pipeline,        ///< stages of the program, through which micro-batches flow
  model_parallel,  ///< parts of the program, each on a device of its own
};

std::string_view name_of(ExecutionMode mode);
std::string_view name_of(GradientMode mode);
std::string_view name_of(ParallelMode mode);

/// A device of a model-parallel execution: an even share of the threads and memory of its own, on a
/// NUMA node of its own where the machine has several.
struct Device {
  /// Most bytes that it may take, gradients that it makes among them.
  Bytes memory_budget = unlimited;
  /// Scopes whose nodes are placed on it, with their adjoints. Other nodes are placed such that it
  /// takes little time, and little memory of any device.
  std::vector<std::string> scopes = {};

  bool operator==(const Device&) const = default;
};

/// Every choice of how a program is executed, none of what it computes: for `Execution`. A value;
/// what it does not say is as in the default one. `require_valid` says which choices go together.
struct ExecutionStrategy {
  ExecutionMode mode = ExecutionMode::lazy;
  StageLimits stage = {};  ///< of a hybrid mode

  /// Floating values are computed in; as they are recorded when empty. In mixed f16 losses are
  /// scaled (see `Execution::gradients`).
  std::optional<Precision> precision = {};

  GradientMode gradient = GradientMode::automatic;
  // How gradients are checkpointed: one of these.
  std::optional<std::uint32_t> checkpoint_interval = {};  ///< nodes of a segment computed again
  /// Of the bytes that keeping everything takes; the least that is found where that is more.
  std::optional<double> checkpoint_fraction = {};
  /// As `planner_named` knows it. Planners that compute again only what a budget demands, as `auto`
  /// and `greedy`, need a budget, but for the stages of a pipeline.
  std::string checkpoint_planner = {};

  /// Micro-batches, one after the other, that the batch of a gradient is cut into; of a pipeline
  /// that of a value too.
  int accumulation = 1;

  MemoryHandling memory = MemoryHandling::minimal_peak;
  /// Of all that runs at once, replicas and sums of gradients among it. Without one, planned runs
  /// of which nothing is said on what is computed again keep to the memory that is free.
  Bytes memory_budget = unlimited;

  ParallelMode parallelism = ParallelMode::automatic;
  int workers = 0;                   ///< replicas of a data-parallel mode; 0 is one per thread
  int stages = 0;                    ///< of a pipeline; 0, where ranks run them, is one per rank
  std::vector<Device> devices = {};  ///< of a model-parallel mode
  int threads = 0;                   ///< of all that runs at once; 0 is one per core

  bool fusion = true;
  bool profiling = false;
  bool anomaly = false;  ///< the first NaN or infinity is an error

  /// What a program without replicas and micro-batches runs with. Throws as `require_valid`.
  RunOptions run_options() const;
  /// On this machine, now.
  int thread_count() const;
  int replicas() const;

  /// One line: what differs from the default.
  std::string summary() const;

  bool operator==(const ExecutionStrategy&) const = default;
};

std::ostream& operator<<(std::ostream& stream, const ExecutionStrategy& strategy);

/// Throws `ArgumentError` for numbers out of range, for settings that the modes chosen have no use
/// for, and for modes that contradict each other.
void require_valid(const ExecutionStrategy& strategy);

/// A strategy as JSON of format `palimpsest-strategy`, version 1. Its members are those of the
/// struct; those that are left out are as in the default one.
///
///     {"format": "palimpsest-strategy", "version": 1, "mode": "hybrid", "stage": {"nodes": 100},
///      "gradient": "checkpointed", "checkpoint_fraction": 0.4, "memory": "pooled"}
///
/// Throws `ArgumentError` when the strategy is not valid.
std::string to_json(const ExecutionStrategy& strategy);
/// The strategy that JSON says. Throws `FileError` naming the place in it for whatever the format
/// does not allow, and for what `require_valid` refuses.
ExecutionStrategy strategy_from_json(std::string_view text);

/// The same from and to files. Errors name the file too; `FileError` when it cannot be read or
/// written.
ExecutionStrategy read_strategy(const std::string& path);
void write_strategy(const ExecutionStrategy& strategy, const std::string& path);

/// A strategy with a name.
struct NamedStrategy {
  std::string_view name;
  std::string_view purpose;  ///< one line
  ExecutionStrategy strategy;
};
/// All of them: `default`, `training` and so on.
std::span<const NamedStrategy> named_strategies();
/// Throws `ArgumentError` listing the names there are.
const ExecutionStrategy& strategy_named(std::string_view name);

}  // namespace palimpsest
