#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "autodiff/error.h"
#include "autodiff/files.h"
#include "checkpoint/json_file.h"
#include "strategy/base/enumerators.h"
#include "strategy/base/strategy_fields.h"

namespace palimpsest {
namespace {

constexpr const char* strategy_format = "palimpsest-strategy";

template <class T>
T natural(const JsonValue& value) {
  const std::int64_t number = value.natural();
  if (number > std::numeric_limits<T>::max()) {
    value.fail(std::to_string(number) + " is too large; give at most " +
               std::to_string(std::numeric_limits<T>::max()));
  }
  return static_cast<T>(number);
}

// Reading a field, by its type.

void read(const JsonValue& value, bool& field) { field = value.boolean(); }
void read(const JsonValue& value, int& field) { field = natural<int>(value); }
void read(const JsonValue& value, Bytes& field) { field = value.natural(); }
void read(const JsonValue& value, std::string& field) { field = value.text(); }
void read(const JsonValue& value, std::optional<double>& field) { field = value.amount(); }
void read(const JsonValue& value, std::optional<std::uint32_t>& field) {
  field = natural<std::uint32_t>(value);
}
template <class E>
  requires std::is_enum_v<E>
void read(const JsonValue& value, E& field) {
  field = value.word(enumerators<E>);
}
void read(const JsonValue& value, StageLimits& limits) {
  static constexpr const char* keys[] = {"nodes", "bytes"};
  value.require_members(keys);
  if (value.has("nodes")) limits.nodes = natural<std::uint32_t>(value.at("nodes"));
  if (value.has("bytes")) limits.bytes = value.at("bytes").natural();
}
void read(const JsonValue& value, std::optional<Precision>& field) {
  static constexpr const char* keys[] = {"kind", "half"};
  value.require_members(keys);
  Precision& precision = field.emplace();
  if (value.has("kind")) read(value.at("kind"), precision.kind);
  if (value.has("half")) precision.half = value.at("half").word({DType::bf16, DType::f16});
}
void read(const JsonValue& value, std::vector<Device>& devices) {
  static constexpr const char* keys[] = {"memory_budget", "scopes"};
  for (std::size_t d = 0; d < value.size(); ++d) {
    const JsonValue each = value[d];
    each.require_members(keys);
    Device& device = devices.emplace_back();
    if (each.has("memory_budget")) device.memory_budget = each.at("memory_budget").natural();
    if (!each.has("scopes")) continue;
    const JsonValue scopes = each.at("scopes");
    for (std::size_t i = 0; i < scopes.size(); ++i) device.scopes.push_back(scopes[i].text());
  }
}

// Writing a field, by its type; null where nothing is set.

Json json_of(const StageLimits& limits) {
  return {{"nodes", limits.nodes}, {"bytes", limits.bytes}};
}
Json json_of(const Precision& precision) {
  return {{"kind", name_of(precision.kind)}, {"half", name_of(precision.half)}};
}
Json json_of(const std::vector<Device>& devices) {
  Json list = Json::array();
  for (const Device& device : devices) {
    Json json = Json::object();
    if (device.memory_budget != unlimited) json["memory_budget"] = device.memory_budget;
    if (!device.scopes.empty()) json["scopes"] = device.scopes;
    list.push_back(std::move(json));
  }
  return list;
}
template <class T>
Json json_of(const T& field) {
  if constexpr (std::is_enum_v<T>) {
    return name_of(field);
  } else {
    return field;
  }
}
template <class T>
Json json_of(const std::optional<T>& field) {
  return field ? json_of(*field) : Json();
}

std::vector<const char*> field_names() {
  std::vector<const char*> names;
  const ExecutionStrategy usual;
  visit_fields(usual, [&](const char* name, const auto&) { names.push_back(name); });
  return names;
}

ExecutionStrategy strategy_in(const JsonText& json, const char* operation) {
  const JsonFile file(json, operation, strategy_format, field_names());
  const JsonValue root = file.root();
  ExecutionStrategy strategy;
  visit_fields(strategy, [&](const char* name, auto& field) {
    if (root.has(name)) read(root.at(name), field);
  });
  try {
    require_valid(strategy);
  } catch (const ArgumentError& error) {
    root.fail(error.what());
  }
  return strategy;
}

/// Throws `ArgumentError` for what files do not have.
void require_writable(const RunOptions& run) {
  const auto refuse = [](const char* what) {
    throw ArgumentError("[strategy] a strategy file cannot hold " + std::string(what) +
                        "; leave it out, and set it after reading the file");
  };
  if (run.planner != nullptr) refuse("run.planner");
  if (run.stop.stop_possible()) refuse("run.stop");
  if (run.progress != nullptr) refuse("run.progress");
  if (run.machine != Machine{}) refuse("run.machine");
  if (run.costs != nullptr) refuse("run.costs");
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
  require_writable(strategy.run);
  Json json{{"format", strategy_format}, {"version", 1}};
  Json usual;
  const ExecutionStrategy default_strategy;
  visit_fields(default_strategy,
               [&](const char* name, const auto& field) { usual[name] = json_of(field); });
  visit_fields(strategy, [&](const char* name, const auto& field) {
    Json value = json_of(field);
    if (value != usual[name]) json[name] = std::move(value);
  });
  try {
    return json.dump(2) + "\n";
  } catch (const Json::exception&) {
    throw ArgumentError("[strategy] a scope or the planner's name is not UTF-8; rename it");
  }
}

void write_strategy(const ExecutionStrategy& strategy, const std::string& path) {
  write_file(path, to_json(strategy), "write_strategy");
}

}  // namespace palimpsest
