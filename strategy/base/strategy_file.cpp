#include <limits>
#include <string>

#include "autodiff/error.h"
#include "autodiff/files.h"
#include "checkpoint/json_file.h"
#include "strategy/base/execution_strategy.h"

namespace palimpsest {
namespace {

constexpr const char* strategy_format = "palimpsest-strategy";

template <class T>
T natural(const JsonValue& value) {
  const std::int64_t number = value.natural();
  if (number > std::numeric_limits<T>::max()) {
    value.fail(std::to_string(number) + " is too large");
  }
  return static_cast<T>(number);
}

StageLimits read_stage(const JsonValue& value) {
  static constexpr const char* keys[] = {"nodes", "bytes"};
  value.require_members(keys);
  StageLimits limits;
  if (value.has("nodes")) limits.nodes = natural<std::uint32_t>(value.at("nodes"));
  if (value.has("bytes")) limits.bytes = value.at("bytes").natural();
  return limits;
}

Precision read_precision(const JsonValue& value) {
  static constexpr const char* keys[] = {"kind", "half"};
  value.require_members(keys);
  Precision precision;
  using enum PrecisionKind;
  if (value.has("kind")) precision.kind = value.at("kind").word({full, single, half, mixed});
  if (value.has("half")) precision.half = value.at("half").word({DType::bf16, DType::f16});
  return precision;
}

std::vector<Device> read_devices(const JsonValue& value) {
  static constexpr const char* keys[] = {"memory_budget", "scopes"};
  std::vector<Device> devices;
  for (std::size_t d = 0; d < value.size(); ++d) {
    const JsonValue each = value[d];
    each.require_members(keys);
    Device& device = devices.emplace_back();
    if (each.has("memory_budget")) device.memory_budget = each.at("memory_budget").natural();
    if (!each.has("scopes")) continue;
    const JsonValue scopes = each.at("scopes");
    for (std::size_t i = 0; i < scopes.size(); ++i) device.scopes.push_back(scopes[i].text());
  }
  return devices;
}

Json json_of(std::span<const Device> devices) {
  Json list = Json::array();
  for (const Device& device : devices) {
    Json json = Json::object();
    if (device.memory_budget != unlimited) json["memory_budget"] = device.memory_budget;
    if (!device.scopes.empty()) json["scopes"] = device.scopes;
    list.push_back(std::move(json));
  }
  return list;
}

ExecutionStrategy strategy_in(const JsonText& json, const char* operation) {
  const JsonFile file(
      json, operation, strategy_format,
      {"mode", "stage", "precision", "gradient", "checkpoint_interval", "checkpoint_fraction",
       "checkpoint_planner", "accumulation", "memory", "memory_budget", "parallelism", "workers",
       "stages", "devices", "threads", "fusion", "profiling", "anomaly"});
  const JsonValue root = file.root();
  ExecutionStrategy read;
  const auto given = [&](const char* key, auto set) {
    if (root.has(key)) set(root.at(key));
  };
  using enum ExecutionMode;
  given("mode", [&](const JsonValue& value) { read.mode = value.word({lazy, eager, hybrid}); });
  given("stage", [&](const JsonValue& value) { read.stage = read_stage(value); });
  given("precision", [&](const JsonValue& value) { read.precision = read_precision(value); });
  given("gradient", [&](const JsonValue& value) {
    using enum GradientMode;
    read.gradient = value.word({none, automatic, full, checkpointed});
  });
  given("checkpoint_interval",
        [&](const JsonValue& value) { read.checkpoint_interval = natural<std::uint32_t>(value); });
  given("checkpoint_fraction",
        [&](const JsonValue& value) { read.checkpoint_fraction = value.amount(); });
  given("checkpoint_planner",
        [&](const JsonValue& value) { read.checkpoint_planner = value.text(); });
  given("accumulation", [&](const JsonValue& value) { read.accumulation = natural<int>(value); });
  given("memory", [&](const JsonValue& value) {
    using enum AllocationPolicy;
    read.memory = value.word({minimal_peak, pooled, standard, cached});
  });
  given("memory_budget", [&](const JsonValue& value) { read.memory_budget = value.natural(); });
  given("parallelism", [&](const JsonValue& value) {
    using enum ParallelMode;
    read.parallelism = value.word({none, automatic, data_parallel, pipeline, model_parallel});
  });
  given("workers", [&](const JsonValue& value) { read.workers = natural<int>(value); });
  given("stages", [&](const JsonValue& value) { read.stages = natural<int>(value); });
  given("devices", [&](const JsonValue& value) { read.devices = read_devices(value); });
  given("threads", [&](const JsonValue& value) { read.threads = natural<int>(value); });
  given("fusion", [&](const JsonValue& value) { read.fusion = value.boolean(); });
  given("profiling", [&](const JsonValue& value) { read.profiling = value.boolean(); });
  given("anomaly", [&](const JsonValue& value) { read.anomaly = value.boolean(); });
  try {
    require_valid(read);
  } catch (const ArgumentError& error) {
    root.fail(error.what());
  }
  return read;
}

}  // namespace

ExecutionStrategy strategy_from_json(std::string_view text) {
  return strategy_in({"the text", std::string(text)}, "strategy_from_json");
}

ExecutionStrategy read_strategy(const std::string& path) {
  return strategy_in({path, read_file(path, "read_strategy")}, "read_strategy");
}

std::string to_json(const ExecutionStrategy& strategy) {
  require_valid(strategy);
  Json json{{"format", strategy_format}, {"version", 1}};
  const ExecutionStrategy usual;
  const auto set = [&](const char* key, const auto& value, const auto& otherwise) {
    if (value != otherwise) json[key] = value;
  };
  set("mode", name_of(strategy.mode), name_of(usual.mode));
  if (strategy.stage != usual.stage) {
    json["stage"] = {{"nodes", strategy.stage.nodes}, {"bytes", strategy.stage.bytes}};
  }
  if (strategy.precision) {
    json["precision"] = {{"kind", name_of(strategy.precision->kind)},
                         {"half", name_of(strategy.precision->half)}};
  }
  set("gradient", name_of(strategy.gradient), name_of(usual.gradient));
  if (strategy.checkpoint_interval) json["checkpoint_interval"] = *strategy.checkpoint_interval;
  if (strategy.checkpoint_fraction) json["checkpoint_fraction"] = *strategy.checkpoint_fraction;
  set("checkpoint_planner", strategy.checkpoint_planner, usual.checkpoint_planner);
  set("accumulation", strategy.accumulation, usual.accumulation);
  set("memory", name_of(strategy.memory), name_of(usual.memory));
  set("memory_budget", strategy.memory_budget, usual.memory_budget);
  set("parallelism", name_of(strategy.parallelism), name_of(usual.parallelism));
  set("workers", strategy.workers, usual.workers);
  set("stages", strategy.stages, usual.stages);
  if (!strategy.devices.empty()) json["devices"] = json_of(strategy.devices);
  set("threads", strategy.threads, usual.threads);
  set("fusion", strategy.fusion, usual.fusion);
  set("profiling", strategy.profiling, usual.profiling);
  set("anomaly", strategy.anomaly, usual.anomaly);
  return json.dump(2) + "\n";
}

void write_strategy(const ExecutionStrategy& strategy, const std::string& path) {
  write_file(path, to_json(strategy), "write_strategy");
}

}  // namespace palimpsest
