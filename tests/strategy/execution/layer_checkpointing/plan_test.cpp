#include "strategy/execution/layer_checkpointing/layer_plan.h"

#include "autodiff/error.h"
#include "tests/catch.h"
#include "tests/error_of.h"

namespace palimpsest::plan_test {
namespace {

using Mode = LayerCheckpointing::Mode;
using Stages = std::vector<std::size_t>;

Stages every(int interval, std::optional<int> max_kept, LayerCount count,
             LayerCheckpointing::Sublayers sublayers = {}) {
  return boundaries_of(
      {.mode = Mode::every, .interval = interval, .sublayers = sublayers, .max_kept = max_kept},
      count);
}

TEST_CASE("every n layers an input is kept") {
  CHECK(every(1, {}, {4, 1}) == Stages{1, 2, 3});
  CHECK(every(2, {}, {4, 1}) == Stages{2});
  CHECK(every(2, {}, {5, 1}) == Stages{2, 4});
  CHECK(every(5, {}, {5, 1}).empty());
  CHECK(every(1, {}, {1, 1}).empty());
}

TEST_CASE("of sublayers those inputs are kept that are asked for") {
  CHECK(every(2, {}, {5, 2}) == Stages{4, 8});
  CHECK(every(2, {}, {5, 2}, {false, true}) == Stages{1, 5, 9});
  CHECK(every(2, {}, {5, 2}, {true, true}) == Stages{1, 4, 5, 8, 9});
  check_error([] { every(2, {}, {5, 1}, {true, true}); }, {"feed-forward", "have no sublayers"});
}

TEST_CASE("the interval is the least that keeps no more than the limit") {
  CHECK(every(1, 3, {4, 1}) == Stages{1, 2, 3});
  CHECK(every(1, 2, {4, 1}) == Stages{2});
  CHECK(every(1, 2, {9, 1}) == Stages{3, 6});
  CHECK(every(4, 2, {9, 1}) == Stages{4, 8});
  CHECK(every(1, 0, {9, 1}).empty());
  CHECK(every(1, 3, {4, 2}, {true, true}) == Stages{1, 4, 5});
  CHECK(every(1, 1, {4, 2}, {false, true}) == Stages{1});
}

TEST_CASE("listed layers") {
  const LayerCheckpointing given{.mode = Mode::listed, .layers = {4, 0, 2}};
  CHECK(boundaries_of(given, {5, 1}) == Stages{2, 4});
  LayerCheckpointing both = given;
  both.sublayers = {true, true};
  CHECK(boundaries_of(both, {5, 2}) == Stages{1, 4, 5, 8, 9});
  check_error([&] { boundaries_of(given, {4, 1}); },
              {"layer 4 is listed; layers are numbered from 0 to 3"});
}

TEST_CASE("segments lie between the inputs kept") {
  const auto segments = fixed_segments({.mode = Mode::listed, .layers = {1, 3}}, {5, 1});
  CHECK(segments == std::vector<LayerSegment>{{0, 1, false}, {1, 3, false}, {3, 5, true, true}});
  const LayerCheckpointing rounded{.mode = Mode::every, .interval = 3, .codec = Codec::half};
  CHECK(fixed_segments(rounded, {5, 1}) == std::vector<LayerSegment>{{0, 3, false}, {3, 5, false}});
  CHECK(fixed_segments(rounded, {3, 1}) == std::vector<LayerSegment>{{0, 3, true, true}});
  CHECK(fixed_segments({.mode = Mode::every, .interval = 9}, {5, 1}) ==
        std::vector<LayerSegment>{{0, 5, true, true}});
  CHECK(fixed_segments({.mode = Mode::none}, {5, 2}) == std::vector<LayerSegment>{{0, 10, true}});
}

TEST_CASE("a simulation computes again what is saved of no bytes too") {
  const std::vector<LayerStage> saving{{.saved = 0, .saves = true}};
  const std::vector<LayerStage> idle{{.saved = 0, .saves = false}};
  const LayerSegment again{0, 1, false};
  CHECK(simulate(saving, {&again, 1}).use.forward_passes == std::vector{2});
  CHECK(simulate(idle, {&again, 1}).use.forward_passes == std::vector{1});
}

TEST_CASE("a simulation leaves alone what lies before a stage that stops derivatives") {
  std::vector<LayerStage> stages(4, {10, 5, 100, 20, 1, 1, 1, 2});
  stages[2].flows = false;
  const auto of = [&](std::vector<LayerSegment> segments) { return simulate(stages, segments); };
  const LayerForecast apart = of({{0, 1, false}, {1, 2, false}, {2, 3, false}, {3, 4, false}});
  CHECK(apart.use == LayerUse{15, 15 + 10 + 100, 3, {1, 1, 2, 2}});
  // Two repeated forward passes, relative to four forward and two backward passes.
  CHECK(apart.compute_factor == 1 + 2.0 / (4 * 1 + 2 * 2));
  // The layers before it in its own segment are recomputed for it.
  const LayerForecast together = of({{0, 3, false}, {3, 4, false}});
  CHECK(together.use.forward_passes == std::vector{2, 2, 2, 2});
}

TEST_CASE("a simulation counts what is held at the worst moment") {
  // Per stage: input, stored input, saved, output; seconds of a pass, a pass with saving, saving,
  // backward.
  const std::vector<LayerStage> stages{
      {10, 5, 100, 20, 1, 1, 1, 2}, {20, 10, 200, 30, 2, 2, 1, 4}, {30, 15, 300, 40, 3, 3, 3, 6}};
  const auto of = [&](std::vector<LayerSegment> segments) { return simulate(stages, segments); };
  SECTION("tapes") {
    const LayerForecast found = of({{0, 3, true}});
    CHECK(found.keep_all == 100 + 20 + 200 + 30 + 300);
    CHECK(found.use == LayerUse{found.keep_all, found.keep_all, 0, {1, 1, 1}});
    CHECK(found.compute_factor == 1);
  }
  SECTION("one segment") {
    CHECK(of({{0, 3, false}}).use == LayerUse{0, 100 + 20 + 200 + 30 + 300, 0, {2, 2, 2}});
  }
  SECTION("two, the second from a rounded input") {
    const LayerForecast found = of({{0, 1, false}, {1, 3, false}});
    CHECK(found.use == LayerUse{10, 10 + 20 + 200 + 30 + 300, 1, {2, 2, 2}});
    CHECK(found.saved() == 650 - 560);
    CHECK(found.compute_factor == 1 + 6.0 / 18);
  }
  SECTION("a tape between segments keeps its input exactly and holds the next one's") {
    const LayerForecast found = of({{0, 1, false}, {1, 2, true}, {2, 3, false}});
    CHECK(found.use == LayerUse{20 + 230, 250 + 300, 1, {2, 1, 2}});
    CHECK(found.compute_factor == 1 + 4.0 / 18);
  }
  SECTION("what only the output takes is not computed again at the end of a segment") {
    CHECK(of({{0, 2, false}, {2, 3, true}}).compute_factor == 1 + 2.0 / 18);
  }
}

}  // namespace
}  // namespace palimpsest::plan_test
