#include "strategy/base/execution_strategy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ostream>
#include <type_traits>

#include "autodiff/enumerators.h"
#include "autodiff/number_text.h"
#include "checkpoint/planners.h"
#include "strategy/base/enumerators.h"
#include "strategy/base/strategy_fields.h"

namespace palimpsest {

std::string_view name_of(ExecutionMode mode) {
  static constexpr std::array<std::string_view, 3> names{"lazy", "eager", "hybrid"};
  return names[static_cast<std::size_t>(mode)];
}

std::string_view name_of(GradientMode mode) {
  static constexpr std::array<std::string_view, 4> names{"none", "automatic", "full",
                                                         "checkpointed"};
  return names[static_cast<std::size_t>(mode)];
}

std::string_view name_of(ParallelMode mode) {
  static constexpr std::array<std::string_view, 5> names{"none", "automatic", "data_parallel",
                                                         "pipeline", "model_parallel"};
  return names[static_cast<std::size_t>(mode)];
}

namespace {

[[noreturn]] void refuse(const std::string& problem) {
  throw ArgumentError("[strategy] " + problem);
}

/// Every option that is an enumerator.
void require_enumerators(const ExecutionStrategy& s) {
  visit_fields(s, [](const char* name, const auto& field) {
    using Field = std::remove_cvref_t<decltype(field)>;
    if constexpr (std::is_enum_v<Field>) {
      require_enumerator(field, enumerators<Field>, "[strategy] " + std::string(name));
    }
  });
  if (!s.precision) return;
  require_enumerator(s.precision->kind, enumerators<PrecisionKind>, "[strategy] precision.kind");
  require_enumerator(s.precision->half, enumerators<DType>, "[strategy] precision.half");
}

void require_numbers(const ExecutionStrategy& s) {
  const auto at_least_one = [](auto number, const char* what) {
    if (number >= 1) return;
    refuse(std::string(what) + " is " + std::to_string(number) + "; give 1 or more");
  };
  at_least_one(s.accumulation, "accumulation");
  at_least_one(s.stage.nodes, "stage.nodes");
  at_least_one(s.stage.bytes, "stage.bytes");
  for (const auto& [number, what] :
       {std::pair(s.run.threads, "threads"), {s.workers, "workers"}, {s.stages, "stages"}}) {
    if (number >= 0) continue;
    refuse(std::string(what) + " is " + std::to_string(number) + "; give 0 or more");
  }
  constexpr int most_parts = 1 << 20;
  if (s.workers > most_parts || s.accumulation > most_parts / std::max(1, s.workers)) {
    refuse(std::to_string(s.workers) + " workers and " + std::to_string(s.accumulation) +
           " micro-batches exceed the " + std::to_string(most_parts) +
           " parts that a batch can be cut into; give fewer");
  }
  if (s.run.memory_budget < 0) {
    refuse("memory_budget is " + std::to_string(s.run.memory_budget) +
           " bytes; give 0 or more, such as 256_MiB");
  }
}

/// Whether a planner recomputes something even when memory is unlimited.
bool needs_no_budget(std::string_view planner) {
  static constexpr std::array<std::string_view, 5> names{"square_root", "uniform", "every",
                                                         "binomial", "fraction"};
  return std::ranges::find(names, planner) != names.end();
}

void require_budget_for_planner(const ExecutionStrategy& s) {
  planner_named(s.checkpoint_planner);
  if (needs_no_budget(named_planner(s.checkpoint_planner).name)) return;
  // The stages of a pipeline run forward again with any planner.
  const bool limited =
      s.run.memory_budget != unlimited || s.parallelism == ParallelMode::pipeline ||
      std::ranges::any_of(s.devices, [](const Device& d) { return d.memory_budget != unlimited; });
  if (limited) return;
  refuse("checkpoint_planner = " + s.checkpoint_planner +
         " recomputes only to meet a budget, but there is no budget; set memory_budget, set "
         "checkpoint_fraction instead of the planner, or choose a planner that always recomputes, "
         "such as square_root or uniform:8");
}

void require_checkpoints(const ExecutionStrategy& s) {
  const int ways = (s.checkpoint_interval ? 1 : 0) + (s.checkpoint_fraction ? 1 : 0) +
                   (s.checkpoint_planner.empty() ? 0 : 1) + (s.run.planner != nullptr ? 1 : 0);
  if (s.gradient != GradientMode::checkpointed) {
    if (ways == 0) return;
    refuse("checkpoint settings need gradient = checkpointed, not " +
           std::string(name_of(s.gradient)));
  }
  if (ways != 1) {
    refuse(
        "gradient = checkpointed needs exactly one of checkpoint_interval, checkpoint_fraction, "
        "checkpoint_planner and run.planner; with only a memory_budget, choose gradient = "
        "automatic");
  }
  if (s.mode == ExecutionMode::eager) {
    refuse(
        "eager mode does not plan while it records; set a memory_budget and gradient = automatic, "
        "or use a lazy or hybrid mode");
  }
  if (s.checkpoint_interval && *s.checkpoint_interval < 1) {
    refuse("checkpoint_interval is 0; give 1 or more");
  }
  if (s.checkpoint_fraction && !(*s.checkpoint_fraction >= 0 && *s.checkpoint_fraction <= 1)) {
    refuse("checkpoint_fraction is " + number_text(*s.checkpoint_fraction) +
           "; give a fraction between 0 and 1");
  }
  if (!s.checkpoint_planner.empty()) require_budget_for_planner(s);
}

void require_precision(const ExecutionStrategy& s) {
  if (!s.precision) return;
  const Precision& precision = *s.precision;
  if (!is_half(precision.half)) {
    refuse("precision.half is " + std::string(name_of(precision.half)) + "; give bf16 or f16");
  }
  if (!is_half(precision.narrow()) && precision.half != Precision{}.half) {
    refuse("precision.half has no effect in " + precision.summary() + " precision; leave it out");
  }
  if (precision.needs_scaling() && s.run.anomaly && s.gradient != GradientMode::none) {
    refuse("scaled losses sometimes overflow f16, which anomaly makes an error; choose bf16");
  }
}

void require_pipeline(const ExecutionStrategy& s) {
  if (s.parallelism != ParallelMode::pipeline) {
    if (s.stages == 0) return;
    refuse("stages need parallelism = pipeline, not " + std::string(name_of(s.parallelism)));
  }
  constexpr int most_stages = 64;
  if (s.stages < 1 || s.stages > most_stages) {
    refuse("parallelism = pipeline has " + std::to_string(s.stages) + " stages; give 1 to " +
           std::to_string(most_stages));
  }
  constexpr int most_in_a_row = 4096;
  if (s.accumulation > most_in_a_row) {
    refuse("a pipeline records all its micro-batches first; give at most " +
           std::to_string(most_in_a_row) + ", not " + std::to_string(s.accumulation));
  }
  if (s.mode != ExecutionMode::lazy) {
    refuse("a pipeline is cut into stages after recording; it needs mode = lazy, not " +
           std::string(name_of(s.mode)));
  }
  if (s.run.memory != AllocationPolicy::minimal_peak) {
    refuse(
        "pipeline stages compute in memory laid out with their plans; they need memory = "
        "minimal_peak, not " +
        std::string(name_of(s.run.memory)));
  }
}

void require_devices(const ExecutionStrategy& s) {
  if (s.parallelism != ParallelMode::model_parallel) {
    if (s.devices.empty()) return;
    refuse("devices need parallelism = model_parallel, not " + std::string(name_of(s.parallelism)));
  }
  constexpr std::size_t most_devices = 64;
  if (s.devices.empty() || s.devices.size() > most_devices) {
    refuse("parallelism = model_parallel has " + std::to_string(s.devices.size()) +
           " devices; give 1 to " + std::to_string(most_devices));
  }
  for (std::size_t d = 0; d < s.devices.size(); ++d) {
    const std::string name = "devices[" + std::to_string(d) + "]";
    if (s.devices[d].memory_budget < 0) {
      refuse(name + ".memory_budget is " + std::to_string(s.devices[d].memory_budget) +
             "; give 0 bytes or more, or leave it out");
    }
    if (std::ranges::any_of(s.devices[d].scopes, &std::string::empty)) {
      refuse(name + " has a scope without a name; leave it out");
    }
  }
  if (s.mode != ExecutionMode::lazy) {
    refuse("nodes are placed on devices after recording; devices need mode = lazy, not " +
           std::string(name_of(s.mode)));
  }
  if (s.run.memory != AllocationPolicy::minimal_peak) {
    refuse(
        "devices compute in memory laid out with their plans; they need memory = minimal_peak, "
        "not " +
        std::string(name_of(s.run.memory)));
  }
}

void require_modes(const ExecutionStrategy& s) {
  if (s.gradient == GradientMode::none && s.accumulation > 1 &&
      s.parallelism != ParallelMode::pipeline) {
    refuse("accumulation = " + std::to_string(s.accumulation) +
           " has no effect without gradients; set it to 1, or choose another gradient than none");
  }
  if (s.gradient == GradientMode::full && s.mode == ExecutionMode::hybrid) {
    refuse(
        "hybrid mode recomputes values inside a stage, but gradient = full forbids recomputation; "
        "choose mode = lazy, or gradient = automatic");
  }
  if (s.gradient == GradientMode::full && s.mode == ExecutionMode::eager &&
      s.run.memory_budget != unlimited) {
    refuse(
        "eager mode recomputes values that do not fit its memory_budget, but gradient = full "
        "forbids recomputation; leave the budget out, or choose gradient = automatic");
  }
  if (s.run.memory == AllocationPolicy::cached && s.mode != ExecutionMode::lazy) {
    refuse(
        "memory = cached compares whole programs with the previous run; it needs mode = lazy, "
        "not " +
        std::string(name_of(s.mode)));
  }
  if (s.mode != ExecutionMode::hybrid && s.stage != StageLimits{}) {
    refuse("stage needs mode = hybrid, not " + std::string(name_of(s.mode)));
  }
  if (s.parallelism != ParallelMode::data_parallel && s.workers > 0) {
    refuse("workers need parallelism = data_parallel, not " + std::string(name_of(s.parallelism)));
  }
  if (s.parallelism == ParallelMode::none && s.run.threads > 1) {
    refuse("parallelism = none runs on one thread, not on " + std::to_string(s.run.threads) +
           "; leave threads out, or choose another parallelism");
  }
}

}  // namespace

void require_valid(const ExecutionStrategy& strategy) {
  require_enumerators(strategy);
  require_numbers(strategy);
  require_checkpoints(strategy);
  require_precision(strategy);
  require_pipeline(strategy);
  require_devices(strategy);
  require_modes(strategy);
}

int ExecutionStrategy::thread_count() const {
  return parallelism == ParallelMode::none ? 1 : checked_threads(run.threads);
}

int ExecutionStrategy::replicas() const {
  if (parallelism != ParallelMode::data_parallel) return 1;
  return workers > 0 ? workers : thread_count();
}

RunOptions ExecutionStrategy::run_options() const {
  require_valid(*this);
  RunOptions options = run;
  options.threads = thread_count();
  if (gradient == GradientMode::full) options.planner = keep_all();
  if (checkpoint_interval) options.planner = uniform({.every = *checkpoint_interval});
  if (checkpoint_fraction) options.planner = fraction(*checkpoint_fraction);
  if (!checkpoint_planner.empty()) options.planner = planner_named(checkpoint_planner);
  return options;
}

std::string ExecutionStrategy::summary() const {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  add(std::string(name_of(mode)));
  if (mode == ExecutionMode::hybrid && stage != StageLimits{}) {
    add("stages of " + std::to_string(stage.nodes) + " nodes or " + format_bytes(stage.bytes));
  }
  if (precision) add("in " + precision->summary());
  if (gradient == GradientMode::none) add("no gradients");
  if (gradient == GradientMode::full) add("no recomputation");
  if (gradient == GradientMode::checkpointed) {
    std::string how = "checkpointed gradients";
    if (checkpoint_interval) how += " every " + std::to_string(*checkpoint_interval) + " nodes";
    if (checkpoint_fraction) {
      how += " in " + std::to_string(std::lround(*checkpoint_fraction * 100)) + " % of the memory";
    }
    if (!checkpoint_planner.empty()) how += " by " + checkpoint_planner;
    if (run.planner != nullptr) how += " by " + run.planner->name();
    add(how);
  }
  if (accumulation > 1) add(std::to_string(accumulation) + " micro-batches");
  if (run.memory != AllocationPolicy::minimal_peak) {
    add(std::string(name_of(run.memory)) + " memory");
  }
  if (run.memory_budget != unlimited) add("within " + format_bytes(run.memory_budget));
  if (parallelism == ParallelMode::none) add("one thread");
  if (parallelism == ParallelMode::data_parallel)
    add(workers > 0 ? std::to_string(workers) + " replicas" : "one replica per thread");
  if (parallelism == ParallelMode::pipeline)
    add("a pipeline of " + std::to_string(stages) + (stages == 1 ? " stage" : " stages"));
  if (parallelism == ParallelMode::model_parallel)
    add("on " + std::to_string(devices.size()) + (devices.size() == 1 ? " device" : " devices"));
  if (run.threads > 0) add(std::to_string(run.threads) + " threads");
  if (run.native == NativeCode::off) add("without native code");
  if (run.native == NativeCode::at_once) add("native code at once");
  const RunOptions usual;
  for (const Switch& each : switches) {
    if (run.*each.member != usual.*each.member) add(std::string(each.if_changed));
  }
  if (run.machine != usual.machine) add("with costs of another machine");
  if (run.costs != nullptr) add("with measured costs");
  return text;
}

std::ostream& operator<<(std::ostream& stream, const ExecutionStrategy& strategy) {
  return stream << strategy.summary();
}

std::span<const NamedStrategy> named_strategies() {
  static const std::array<NamedStrategy, 9> strategies{{
      {"default", "the behaviour of `backward` without options", {}},
      {"training",
       "repeated steps that reuse the memory of the previous step, without recomputation; an error "
       "if they exceed a memory_budget",
       {.gradient = GradientMode::full}},
      {"inference", "values only, in just the memory they need", {.gradient = GradientMode::none}},
      {"memory-efficient",
       "gradients in a third of keep-all's memory, or in the least memory found",
       {.gradient = GradientMode::checkpointed, .checkpoint_fraction = 1.0 / 3}},
      {"high-throughput",
       "one replica per thread, each on its shard of the batch; for layers too small to share and "
       "losses that are means over the examples",
       {.parallelism = ParallelMode::data_parallel}},
      {"mixed-precision",
       "products in bf16 and the rest in f32: half the bytes for results of products, and faster "
       "on processors that multiply bf16",
       {.precision = Precision{}}},
      {"changing-sizes",
       "programs whose sizes change from step to step: steps reuse freed storage by size, instead "
       "of laying out one block anew",
       {.run = {.memory = AllocationPolicy::pooled}}},
      {"profile",
       "where time and bytes go: the report lists the seconds of every operation",
       {.run = {.profile = true}}},
      {"debug",
       "every operation as recorded, on one thread, in its own storage that memory tools see; the "
       "first NaN is an error",
       {.mode = ExecutionMode::eager,
        .parallelism = ParallelMode::none,
        .run = {.memory = AllocationPolicy::standard, .fuse = false, .anomaly = true}}},
  }};
  return strategies;
}

const ExecutionStrategy& strategy_named(std::string_view name) {
  std::string known;
  for (const NamedStrategy& each : named_strategies()) {
    if (each.name == name) return each.strategy;
    known += (known.empty() ? "" : ", ") + std::string(each.name);
  }
  refuse("unknown strategy " + std::string(name) + "; use one of " + known);
}

}  // namespace palimpsest
