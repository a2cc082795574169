#include "checkpoint/planning_files.h"

#include "autodiff/error.h"
#include "autodiff/files.h"
#include "checkpoint/json_file.h"

namespace palimpsest {
namespace {

constexpr const char* machine_format = "palimpsest-machine";

Cache read_cache(const JsonValue& value) {
  static constexpr const char* keys[] = {"bytes", "bytes_per_second"};
  value.require_members(keys);
  return {value.at("bytes").natural(), value.at("bytes_per_second").amount()};
}

struct RateMember {
  const char* key;
  double FlopRates::* rate;
};
constexpr RateMember rate_members[] = {{"f32", &FlopRates::f32},
                                       {"f64", &FlopRates::f64},
                                       {"bf16", &FlopRates::bf16},
                                       {"f16", &FlopRates::f16}};

struct KindMember {
  const char* key;
  FlopRates Machine::* rates;
};
constexpr KindMember kind_members[] = {{"products", &Machine::products},
                                       {"convolutions", &Machine::convolutions},
                                       {"reductions", &Machine::reductions},
                                       {"functions", &Machine::functions}};

FlopRates read_rates(const JsonValue& value) {
  static constexpr const char* keys[] = {"f32", "f64", "bf16", "f16"};
  value.require_members(keys);
  FlopRates rates;
  for (const auto& [key, rate] : rate_members) {
    if (value.has(key)) rates.*rate = value.at(key).amount();
  }
  return rates;
}

Json to_json(const FlopRates& rates) {
  Json json = Json::object();
  for (const auto& [key, rate] : rate_members) {
    if (rates.*rate != 0) json[key] = rates.*rate;
  }
  return json;
}

}  // namespace

Machine read_machine(const std::string& path) {
  const JsonFile file(path, "read_machine", machine_format,
                      {"flops_per_second", "bytes_per_second", "seconds_per_node", "caches",
                       "products", "convolutions", "reductions", "functions"});
  const JsonValue root = file.root();
  Machine machine{.flops_per_second = root.at("flops_per_second").amount(),
                  .bytes_per_second = root.at("bytes_per_second").amount(),
                  .seconds_per_node = root.at("seconds_per_node").amount()};
  if (root.has("caches")) {
    const JsonValue caches = root.at("caches");
    if (caches.size() > machine.caches.size()) {
      caches.fail(std::to_string(caches.size()) + " caches; give at most " +
                  std::to_string(machine.caches.size()));
    }
    for (std::size_t i = 0; i < caches.size(); ++i) machine.caches[i] = read_cache(caches[i]);
  }
  for (const auto& [key, rates] : kind_members) {
    if (root.has(key)) machine.*rates = read_rates(root.at(key));
  }
  try {
    check(machine);
  } catch (const ArgumentError& error) {
    root.fail(error.what());
  }
  return machine;
}

void write_machine(const Machine& machine, const std::string& path) {
  check(machine);
  Json caches = Json::array();
  for (const Cache& cache : machine.caches) {
    caches.push_back({{"bytes", cache.bytes}, {"bytes_per_second", cache.bytes_per_second}});
  }
  Json json{{"format", machine_format},
            {"version", 1},
            {"flops_per_second", machine.flops_per_second},
            {"bytes_per_second", machine.bytes_per_second},
            {"seconds_per_node", machine.seconds_per_node},
            {"caches", std::move(caches)}};
  for (const auto& [key, rates] : kind_members) json[key] = to_json(machine.*rates);
  write_file(path, json.dump(2) + "\n", "write_machine");
}

}  // namespace palimpsest
