#include "strategy/parallel/devices/device_placement.h"

#include <algorithm>
#include <set>

#include "strategy/base/record_model.h"
#include "tests/strategy/parallel/devices/devices.h"

namespace palimpsest::device_placement_test {
namespace {

using Catch::Matchers::Contains;

/// A model's program and the places where it can be cut.
struct Recorded {
  explicit Recorded(const SmallModel& model) {
    const Where where = Where::current();
    record_loss(program, record_model(model.loss, tape, model.parameters, model.batch, where).loss);
    elements.emplace(program);
  }

  std::vector<DevicePlacement> placements(const std::vector<Device>& devices) const {
    return possible_placements(program, *elements, devices, false);
  }
  /// The devices of the nodes recorded in a scope.
  std::set<int> devices_of(const DevicePlacement& placement, std::string_view scope) const {
    std::set<int> devices;
    for (std::size_t e = 0; e < elements->size(); ++e) {
      if (program.tape.scope_of(elements->node(e)) == scope) devices.insert(placement[e]);
    }
    return devices;
  }

  Tape tape{lazy()};
  RecordedProgram program;
  std::optional<Elements> elements;
};

TEST_CASE("device placement: branches that do not wait for each other are on different devices") {
  const Recorded towers(two_towers(256));
  bool any_apart = false;
  for (const DevicePlacement& placement : towers.placements({{}, {}})) {
    const std::set<int> left = towers.devices_of(placement, "left");
    const std::set<int> right = towers.devices_of(placement, "right");
    any_apart = any_apart || (left.size() == 1 && right.size() == 1 && left != right);
  }
  CHECK(any_apart);
}

TEST_CASE("device placement: without scopes one is in ranges of about the same time") {
  const Recorded chain(two_towers());
  const DevicePlacement ranges = chain.placements({{}, {}, {}})[0];
  CHECK(std::ranges::is_sorted(ranges));
  CHECK(ranges.back() == 2);
  const std::vector<double> seconds = chain.elements->seconds();
  std::vector<double> of_device(3);
  for (std::size_t e = 0; e < ranges.size(); ++e) {
    of_device[static_cast<std::size_t>(ranges[e])] += seconds[e];
  }
  CHECK(*std::ranges::max_element(of_device) < 2 * *std::ranges::min_element(of_device));
}

TEST_CASE("device placement: budgets that differ give ranges of as many bytes") {
  const Recorded chain(two_towers());
  const auto placements =
      chain.placements({{.memory_budget = 1'000'000}, {.memory_budget = 250'000}});
  const DevicePlacement& by_bytes = placements.back();
  CHECK(std::ranges::is_sorted(by_bytes));
  const auto on_first = std::ranges::count(by_bytes, 0);
  CHECK(on_first > 7 * static_cast<std::ptrdiff_t>(by_bytes.size()) / 10);
  CHECK(on_first < static_cast<std::ptrdiff_t>(by_bytes.size()));
  for (std::size_t i = 0; i < placements.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) CHECK(placements[i] != placements[j]);
  }
}

TEST_CASE("device placement: scopes are where they are told, the others with their neighbours") {
  const Recorded towers(two_towers());
  for (const DevicePlacement& placement :
       towers.placements({{.scopes = {"right"}}, {.scopes = {"left"}}, {}})) {
    CHECK(towers.devices_of(placement, "left") == std::set<int>{1});
    CHECK(towers.devices_of(placement, "right") == std::set<int>{0});
  }
  const DevicePlacement beside =
      towers.placements({{.scopes = {"right"}}, {.scopes = {"left"}}, {}})[0];
  CHECK(towers.devices_of(beside, "together") == std::set<int>{0});
}

TEST_CASE("device placement: the longest scope says, and two of a length are refused") {
  SmallModel model = two_towers();
  model.loss = [plain = model.loss](Tape& tape, std::span<const Var> p,
                                    std::span<const Var> batch) {
    const auto scope = tape.scope("model");
    return plain(tape, p, batch);
  };
  const Recorded nested(model);
  for (const DevicePlacement& placement :
       nested.placements({{.scopes = {"model"}}, {.scopes = {"model/left"}}})) {
    CHECK(nested.devices_of(placement, "model/left") == std::set<int>{1});
    CHECK(nested.devices_of(placement, "model/right") == std::set<int>{0});
    CHECK(nested.devices_of(placement, "model/together") == std::set<int>{0});
  }
  CHECK_THROWS_WITH(
      nested.placements({{.scopes = {"left"}}, {.scopes = {"left"}}}),
      Contains("model/left/matmul") && Contains("devices 0 and 1") && Contains("(recorded at "));
  // Nodes recorded in nested scopes belong to the innermost one, whatever the names are.
  for (const DevicePlacement& placement :
       nested.placements({{.scopes = {"model"}}, {.scopes = {"left"}}})) {
    CHECK(nested.devices_of(placement, "model/left") == std::set<int>{1});
  }
  CHECK_THROWS_AS(nested.placements({{.scopes = {"middle"}}, {}}), ArgumentError);
  CHECK_THROWS_WITH(nested.placements({{.scopes = {"middle"}}, {}}), Contains("model/right"));
}

TEST_CASE("device placement: fewer operations than devices leave some without") {
  const SmallModel tiny{
      "tiny", {Tensor::ones({3})}, {}, [](Tape&, auto p, auto) { return sum(p[0]); }};
  const Recorded one(tiny);
  CHECK(one.placements({{}, {}, {}}) == std::vector<DevicePlacement>{{0}});
  const SmallModel none{
      "none", {Tensor::ones({1})}, {}, [](Tape&, auto p, auto) { return reshape(p[0], {}); }};
  CHECK(Recorded(none).placements({{}, {}}) == std::vector<DevicePlacement>{{0}, {1}});
}

}  // namespace
}  // namespace palimpsest::device_placement_test
