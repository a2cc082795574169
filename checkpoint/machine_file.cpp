#include "checkpoint/machine_file.h"

#include "autodiff/error.h"
#include "autodiff/files.h"
#include "checkpoint/json_file.h"

namespace palimpsest {
namespace {

constexpr const char* format = "palimpsest-machine";

Cache read_cache(const JsonValue& value) {
  static constexpr const char* keys[] = {"bytes", "bytes_per_second"};
  value.require_members(keys);
  return {value.at("bytes").natural(), value.at("bytes_per_second").amount()};
}

}  // namespace

Machine read_machine(const std::string& path) {
  const JsonFile file(path, "read_machine", format,
                      {"flops_per_second", "bytes_per_second", "seconds_per_node", "caches"});
  const JsonValue root = file.root();
  Machine machine{.flops_per_second = root.at("flops_per_second").amount(),
                  .bytes_per_second = root.at("bytes_per_second").amount(),
                  .seconds_per_node = root.at("seconds_per_node").amount()};
  if (root.has("caches")) {
    const JsonValue caches = root.at("caches");
    if (caches.size() > machine.caches.size()) {
      caches.fail(std::to_string(caches.size()) + " caches; there are at most " +
                  std::to_string(machine.caches.size()));
    }
    for (std::size_t i = 0; i < caches.size(); ++i) machine.caches[i] = read_cache(caches[i]);
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
  const Json json{{"format", format},
                  {"version", 1},
                  {"flops_per_second", machine.flops_per_second},
                  {"bytes_per_second", machine.bytes_per_second},
                  {"seconds_per_node", machine.seconds_per_node},
                  {"caches", std::move(caches)}};
  write_file(path, json.dump(2) + "\n", "write_machine");
}

}  // namespace palimpsest
