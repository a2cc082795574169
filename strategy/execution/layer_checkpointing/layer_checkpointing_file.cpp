#include <climits>

#include "autodiff/error.h"
#include "autodiff/files.h"
#include "checkpoint/json_file.h"
#include "strategy/execution/layer_checkpointing/layer_checkpointing.h"

namespace palimpsest {
namespace {

using Mode = LayerCheckpointing::Mode;

constexpr const char* layers_format = "palimpsest-layers";

int count(const JsonValue& value) {
  const std::int64_t number = value.natural();
  if (number > INT_MAX)
    value.fail(std::to_string(number) + " is too large; give at most " + std::to_string(INT_MAX));
  return static_cast<int>(number);
}

std::optional<int> optional_count(const JsonValue& root, const char* key) {
  if (!root.has(key)) return {};
  return count(root.at(key));
}

LayerCheckpointing::Sublayers read_sublayers(const JsonValue& value) {
  static constexpr const char* keys[] = {"attention", "feed_forward"};
  value.require_members(keys);
  return {value.at("attention").boolean(), value.at("feed_forward").boolean()};
}

LayerCheckpointing layers_in(const JsonText& json, const char* operation) {
  const JsonFile file(json, operation, layers_format,
                      {"mode", "interval", "minimum_interval", "layers", "memory_fraction",
                       "sublayers", "max_kept", "codec"});
  const JsonValue root = file.root();
  LayerCheckpointing read{
      .mode = root.at("mode").word({Mode::none, Mode::every, Mode::listed, Mode::dynamic}),
      .interval = optional_count(root, "interval"),
      .minimum_interval = optional_count(root, "minimum_interval"),
      .max_kept = optional_count(root, "max_kept")};
  if (root.has("layers")) {
    const JsonValue list = root.at("layers");
    for (std::size_t i = 0; i < list.size(); ++i) read.layers.push_back(count(list[i]));
  }
  if (root.has("memory_fraction")) read.memory_fraction = root.at("memory_fraction").amount();
  if (root.has("sublayers")) read.sublayers = read_sublayers(root.at("sublayers"));
  if (root.has("codec")) {
    read.codec = root.at("codec").word({Codec::exact, Codec::half, Codec::half_f16});
  }
  try {
    require_valid(read);
  } catch (const ArgumentError& error) {
    root.fail(error.what());
  }
  return read;
}

}  // namespace

LayerCheckpointing layer_checkpointing_from_json(std::string_view text) {
  return layers_in({"the text", std::string(text)}, "layer_checkpointing_from_json");
}

LayerCheckpointing read_layer_checkpointing(const std::string& path) {
  constexpr const char* operation = "read_layer_checkpointing";
  return layers_in({path, read_file(path, operation)}, operation);
}

std::string to_json(const LayerCheckpointing& given) {
  require_valid(given);
  Json json{{"format", layers_format}, {"version", 1}, {"mode", name_of(given.mode)}};
  const auto set = [&](const char* key, const auto& value) {
    if (value) json[key] = *value;
  };
  set("interval", given.interval);
  set("minimum_interval", given.minimum_interval);
  if (!given.layers.empty()) json["layers"] = given.layers;
  set("memory_fraction", given.memory_fraction);
  json["sublayers"] = {{"attention", given.sublayers.attention},
                       {"feed_forward", given.sublayers.feed_forward}};
  set("max_kept", given.max_kept);
  json["codec"] = name_of(given.codec);
  return json.dump(2) + "\n";
}

void write_layer_checkpointing(const LayerCheckpointing& given, const std::string& path) {
  write_file(path, to_json(given), "write_layer_checkpointing");
}

}  // namespace palimpsest
