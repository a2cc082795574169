#include <cmath>

#include "autodiff/error.h"
#include "strategy/execution/layer_checkpointing/layer_checkpointing.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/temporary_file.h"
// Must follow tests/catch.h.
#include <rapidcheck.h>
#include <rapidcheck/catch.h>

namespace palimpsest::configuration_test {
namespace {

using Mode = LayerCheckpointing::Mode;

TEST_CASE("settings that contradict each other are refused") {
  const auto refused = [](const LayerCheckpointing& given, const std::string& words) {
    check_error([&] { require_valid(given); }, {"[layers]", words});
  };
  refused({.mode = Mode::none, .interval = 2},
          "interval is for mode every only; leave it out, or set mode to every");
  refused({.mode = Mode::none, .max_kept = 2},
          "mode none keeps tapes, not activations: it takes no max_kept, codec or sublayers; leave "
          "them out, or choose another mode");
  refused({.mode = Mode::none, .codec = Codec::half}, "mode none keeps tapes");
  refused({.mode = Mode::none, .sublayers = {true, true}}, "mode none keeps tapes");
  refused({.mode = Mode::every},
          "needs an interval; give 2 to keep the input of every second layer");
  refused({.mode = Mode::every, .interval = 0}, "interval is 0; give 1 or more");
  refused({.mode = Mode::every, .interval = 2, .minimum_interval = 3},
          "below minimum_interval 3; raise interval or lower minimum_interval");
  refused({.mode = Mode::every, .interval = 2, .minimum_interval = -1}, "minimum_interval is -1");
  refused({.mode = Mode::every, .interval = 2, .layers = {1}},
          "layers are for mode listed only; leave them out, or set mode to listed");
  refused({.mode = Mode::every, .interval = 2, .memory_fraction = 0.5},
          "for mode dynamic only; leave it out, or set mode to dynamic");
  refused({.mode = Mode::every, .interval = 2, .sublayers = {false, false}}, "neither sublayer");
  refused({.mode = Mode::every, .interval = 2, .max_kept = -1}, "max_kept is -1");
  refused(
      {.mode = Mode::every, .interval = 2, .sublayers = {true, true}, .max_kept = 0},
      "layer 0's feed-forward is kept at any interval; give 1 or more, or keep only the inputs of "
      "attention");
  refused({.mode = Mode::listed}, "the list of layers is empty");
  refused({.mode = Mode::listed, .layers = {3, -2}}, "layer -2 is listed");
  refused({.mode = Mode::listed, .layers = {3, 1, 3}}, "layer 3 is listed twice; name it once");
  refused({.mode = Mode::listed, .minimum_interval = 2, .layers = {3}},
          "every and dynamic only; leave it out, or set mode to one of them");
  refused({.mode = Mode::listed, .layers = {0, 1, 3}, .max_kept = 1},
          "keeps 2 activations, more than max_kept = 1");
  refused({.mode = Mode::dynamic},
          "needs a memory_fraction; give the fraction of all layers' tapes that may be held");
  for (const double fraction : {0.0, -0.5, 1.01, std::nan("")}) {
    refused({.mode = Mode::dynamic, .memory_fraction = fraction}, "above 0 and at most 1");
  }
}

TEST_CASE("settings that go together are taken") {
  require_valid(LayerCheckpointing{});
  require_valid({.mode = Mode::every, .interval = 3, .minimum_interval = 3, .max_kept = 0});
  require_valid({.mode = Mode::listed, .layers = {0, 1, 3}, .max_kept = 2});
  require_valid({.mode = Mode::dynamic,
                 .minimum_interval = 2,
                 .memory_fraction = 1,
                 .max_kept = 1,
                 .codec = Codec::half_f16});
}

bool toss() { return *rc::gen::arbitrary<bool>(); }

LayerCheckpointing arbitrary_configuration() {
  LayerCheckpointing given{
      .mode = *rc::gen::element(Mode::none, Mode::every, Mode::listed, Mode::dynamic)};
  if (given.mode == Mode::none) return given;
  given.sublayers.feed_forward = toss();
  given.sublayers.attention = !given.sublayers.feed_forward || toss();
  given.codec = *rc::gen::element(Codec::exact, Codec::half, Codec::half_f16);
  if (given.mode == Mode::every) {
    given.interval = *rc::gen::inRange(1, 2'000'000'000);
    if (toss()) given.minimum_interval = *rc::gen::inRange(1, *given.interval + 1);
  }
  if (given.mode == Mode::listed) {
    given.layers =
        *rc::gen::suchThat(rc::gen::unique<std::vector<int>>(rc::gen::inRange(0, 1000)),
                           [](const std::vector<int>& layers) { return !layers.empty(); });
  }
  if (given.mode == Mode::dynamic) {
    given.memory_fraction = 1.0 / *rc::gen::inRange(1, 1'000'000);
    if (toss()) given.minimum_interval = *rc::gen::inRange(1, 100);
  }
  if (toss()) given.max_kept = *rc::gen::inRange(2'000, 2'000'000'000);
  return given;
}

TEST_CASE("a configuration read is the one written") {
  rc::prop("equal", [] {
    const LayerCheckpointing given = arbitrary_configuration();
    const TemporaryFile file;
    write_layer_checkpointing(given, file.path());
    RC_ASSERT(read_layer_checkpointing(file.path()) == given);
    RC_ASSERT(layer_checkpointing_from_json(to_json(given)) == given);
  });
}

TEST_CASE("a file may leave out what has a default") {
  const TemporaryFile file;
  file.write(R"({"format": "palimpsest-layers", "version": 1, "mode": "every", "interval": 4})");
  const LayerCheckpointing expected{.mode = Mode::every, .interval = 4};
  CHECK(read_layer_checkpointing(file.path()) == expected);
}

TEST_CASE("an error in a file names it and the place") {
  const TemporaryFile file;
  const auto refused = [&](const std::string& members, std::initializer_list<std::string> words) {
    CAPTURE(members);
    file.write(R"({"format": "palimpsest-layers", "version": 1, )" + members + "}");
    std::string message;
    try {
      read_layer_checkpointing(file.path());
    } catch (const FileError& error) {
      message = error.what();
    }
    CHECK_THAT(message, Catch::Matchers::Contains("[read_layer_checkpointing] " + file.path()));
    for (const std::string& word : words) CHECK_THAT(message, Catch::Matchers::Contains(word));
  };
  refused(R"("interval": 2)", {"\"mode\" is missing"});
  refused(R"("mode": "some")", {", mode: \"some\" is unknown", "none, every, listed, dynamic"});
  refused(R"("mode": 1)", {", mode: 1 is not a string"});
  refused(R"("mode": "none", "mod": 1)", {"\"mod\" is unknown; the keys are", "memory_fraction"});
  refused(R"("mode": "every", "interval": 2, "interval": 3)", {"\"interval\" occurs twice"});
  refused(R"("mode": "every", "interval": "2")", {", interval: this string is not a whole number"});
  refused(R"("mode": "every", "interval": 2.5)", {", interval: 2.5 is not a whole number"});
  refused(R"("mode": "every", "interval": -2)", {", interval: -2 is negative"});
  refused(R"("mode": "every", "interval": 3000000000)", {", interval: 3000000000 is too large"});
  refused(R"("mode": "every", "interval": 0)", {"interval is 0; give 1 or more"});
  refused(R"("mode": "every", "interval": null)", {", interval: this null is not"});
  refused(R"("mode": "listed", "layers": 3)", {", layers: 3 is not a list"});
  refused(R"("mode": "listed", "layers": [1, true])", {", layers[1]: this boolean is not"});
  refused(R"("mode": "listed", "layers": [1, 1])", {"layer 1 is listed twice"});
  refused(R"("mode": "dynamic", "memory_fraction": "all")", {", memory_fraction: this string"});
  refused(R"("mode": "dynamic", "memory_fraction": 1.5)", {"memory_fraction is 1.5"});
  refused(R"("mode": "dynamic", "memory_fraction": 0.5, "max_kept": [])",
          {", max_kept: this array is not a whole number"});
  refused(R"("mode": "every", "interval": 1, "sublayers": true)",
          {", sublayers: this boolean is not an object"});
  refused(R"("mode": "every", "interval": 1, "sublayers": {"attention": true})",
          {", sublayers: \"feed_forward\" is missing"});
  refused(R"("mode": "every", "interval": 1, "sublayers": {"attention": 1, "feed_forward": true})",
          {", sublayers.attention: 1 is not true or false"});
  refused(R"("mode": "every", "interval": 1, "sublayers": {"attention": true, "head": true})",
          {", sublayers: \"head\" is unknown"});
  refused(R"("mode": "every", "interval": 1, "codec": "quarter")",
          {", codec: \"quarter\" is unknown", "exact, half, half_f16"});
}

TEST_CASE("what is no configuration file is refused") {
  const TemporaryFile file;
  const auto refused = [&](const std::string& text) {
    file.write(text);
    CHECK_THROWS_AS(read_layer_checkpointing(file.path()), FileError);
  };
  refused("");
  refused("[]");
  refused(R"({"format": "palimpsest-layers", "version": 1, "mode": "none")");
  refused(R"({"format": "palimpsest-graph", "version": 1, "mode": "none"})");
  refused(R"({"format": "palimpsest-layers", "version": 2, "mode": "none"})");
  CHECK_THROWS_AS(read_layer_checkpointing("/nowhere/layers.json"), FileError);
  CHECK_THROWS_AS(write_layer_checkpointing({}, "/nowhere/layers.json"), FileError);
  CHECK_THROWS_AS(write_layer_checkpointing({.mode = Mode::every}, file.path()), ArgumentError);
}

}  // namespace
}  // namespace palimpsest::configuration_test
