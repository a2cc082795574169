#include "strategy/execution/layer_checkpointing/dynamic_segments.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "checkpoint/plan.h"
#include "palimpsest.h"
#include "tests/catch.h"
// Must follow tests/catch.h.
#include <rapidcheck.h>
#include <rapidcheck/catch.h>

namespace palimpsest::dynamic_test {
namespace {

using Mode = LayerCheckpointing::Mode;

std::int64_t picoseconds_again(std::span<const LayerStage> stages,
                               std::span<const LayerSegment> segments) {
  std::int64_t again = 0;
  for (const LayerSegment& segment : segments) {
    for (std::size_t k = segment.first; !segment.taped && k < segment.last; ++k)
      again += std::llround(stages[k].pass * 1e12);
    const LayerStage& end = stages[segment.last - 1];
    if (!segment.taped) again -= std::llround((end.record - end.save) * 1e12);
  }
  return again;
}

struct Best {
  std::optional<std::pair<std::int64_t, Bytes>> within;  // recomputation time, peak
  Bytes lowest = INT64_MAX;                              // lowest peak of all ways
};

/// Tries every way to cut the stages at boundaries, with every choice of tapes.
Best try_all(const LayerCheckpointing& given, LayerCount count, std::span<const LayerStage> stages,
             Bytes budget) {
  const std::vector<std::size_t> boundaries = boundaries_of(given, count);
  Best best;
  for (std::size_t cuts = 0; cuts < std::size_t{1} << boundaries.size(); ++cuts) {
    std::vector<LayerSegment> segments{{0, stages.size(), false}};
    for (std::size_t b = 0; b < boundaries.size(); ++b) {
      if ((cuts >> b & 1) == 0) continue;
      segments.back().last = boundaries[b];
      segments.push_back({boundaries[b], stages.size(), false});
    }
    for (std::size_t taped = 0; taped < std::size_t{1} << segments.size(); ++taped) {
      bool allowed = true;
      for (std::size_t i = 0; i < segments.size(); ++i) {
        segments[i].taped = (taped >> i & 1) != 0;
        const std::size_t parts = segments[i].last - segments[i].first;
        const int least = given.minimum_interval.value_or(0) * count.sublayers;
        allowed = allowed && (segments[i].taped || i + 1 == segments.size() ||
                              parts >= static_cast<std::size_t>(least));
      }
      const LayerUse use = simulate(stages, segments).use;
      if (!allowed || (given.max_kept && use.kept_activations > *given.max_kept)) continue;
      best.lowest = std::min(best.lowest, use.peak);
      const std::pair found(picoseconds_again(stages, segments), use.peak);
      if (use.peak <= budget && (!best.within || found < *best.within)) best.within = found;
    }
  }
  return best;
}

/// Uniform on [least, most), also in small cases.
int pick(int least, int most) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(least, most));
}
bool toss() { return pick(0, 2) == 1; }

std::vector<LayerStage> arbitrary_stages(std::size_t number, bool half) {
  std::vector<LayerStage> stages;
  for (std::size_t k = 0; k < number; ++k) {
    LayerStage stage{.input = pick(0, 20), .saved = pick(0, 60), .output = pick(0, 20)};
    stage.stored_input = half ? stage.input / 2 : stage.input;
    stage.pass = pick(0, 30) * 1e-9;
    stage.save = pick(0, 30) * 1e-9;
    // Saving the values and computing the output share some of the work.
    stage.record = std::max(stage.pass, stage.save) + pick(0, 10) * 1e-9;
    stage.record = std::min(stage.record, stage.pass + stage.save);
    stages.push_back(stage);
  }
  return stages;
}

/// Checks one random model and configuration.
void check_against_all() {
  const LayerCount count{pick(1, 5), pick(1, 3)};
  LayerCheckpointing given{.mode = Mode::dynamic, .memory_fraction = pick(30, 101) / 100.0};
  if (count.sublayers == 2) {
    given.sublayers.feed_forward = toss();
    given.sublayers.attention = !given.sublayers.feed_forward || toss();
  }
  if (toss()) given.max_kept = pick(0, 4);
  if (toss()) given.minimum_interval = pick(1, 4);
  const std::vector<LayerStage> stages = arbitrary_stages(count.stages(), toss());
  const LayerSegment all{0, stages.size(), true};
  const auto budget = static_cast<Bytes>(*given.memory_fraction *
                                         static_cast<double>(simulate(stages, {&all, 1}).keep_all));
  const Best best = try_all(given, count, stages, budget);
  try {
    const std::vector<LayerSegment> found = dynamic_segments(given, count, stages);
    const LayerUse use = simulate(stages, found).use;
    RC_ASSERT(best.within.has_value());
    RC_ASSERT(picoseconds_again(stages, found) == best.within->first);
    RC_ASSERT(use.peak == best.within->second);
    RC_ASSERT(!given.max_kept || use.kept_activations <= *given.max_kept);
  } catch (const BudgetError& error) {
    RC_ASSERT(!best.within.has_value());
    RC_ASSERT(error.smallest_feasible() == best.lowest);
    RC_ASSERT(error.budget() == budget);
  }
}

TEST_CASE("dynamic computes no more again than the best of all ways within the fraction") {
  rc::prop("equals what trying all finds", [] {
    for (int i = 0; i < 10; ++i) check_against_all();
  });
}

/// The stages of a transformer, in MiB and milliseconds.
std::vector<LayerStage> transformer_stages(int layers) {
  std::vector<LayerStage> stages;
  for (int layer = 0; layer < layers; ++layer) {
    stages.push_back({4_MiB, 2_MiB, 30_MiB, 4_MiB, 3e-3, 3e-3, 2e-3, 6e-3});
    stages.push_back({4_MiB, 2_MiB, 37_MiB, 4_MiB, 5e-3, 5e-3, 4e-3, 10e-3});
  }
  return stages;
}

TEST_CASE("the fraction that an error advises is enough, and what it names was given") {
  using Catch::Matchers::Contains;
  const auto message_of = [](const LayerCheckpointing& given, std::span<const LayerStage> stages) {
    std::string message;
    try {
      dynamic_segments(given, {static_cast<int>(stages.size()), 1}, stages);
    } catch (const BudgetError& error) {
      message = error.what();
    }
    return message;
  };
  for (Bytes saved = 1; saved <= 400; ++saved) {
    CAPTURE(saved);
    const std::vector<LayerStage> stages(3, {10, 10, saved, 10, 3e-3, 3e-3, 2e-3, 6e-3});
    LayerCheckpointing given{.mode = Mode::dynamic, .memory_fraction = 1e-3};
    const std::string message = message_of(given, stages);
    const std::string before = "raise memory_fraction to ";
    REQUIRE_THAT(message, Contains(before));
    CHECK_THAT(message, !Contains("max_kept") && !Contains("minimum_interval"));
    given.memory_fraction = std::stod(message.substr(message.find(before) + before.size()));
    CHECK(message_of(given, stages).empty());
  }
  const std::vector<LayerStage> stages(3, {10, 10, 60, 10, 3e-3, 3e-3, 2e-3, 6e-3});
  LayerCheckpointing given{.mode = Mode::dynamic, .memory_fraction = 1e-3, .max_kept = 1};
  CHECK_THAT(message_of(given, stages), Contains(", or raise max_kept"));
  given.minimum_interval = 2;
  CHECK_THAT(message_of(given, stages), Contains(", or raise max_kept, or lower minimum_interval"));
}

TEST_CASE("more memory never computes more again, of 96 sublayers") {
  const std::vector<LayerStage> stages = transformer_stages(48);
  LayerCheckpointing given{.mode = Mode::dynamic, .sublayers = {true, true}};
  // A limit that is never reached changes nothing.
  if (GENERATE(false, true)) given.max_kept = 96;
  double before = INFINITY;
  for (const double fraction : {0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0}) {
    CAPTURE(fraction);
    given.memory_fraction = fraction;
    const auto segments = dynamic_segments(given, {48, 2}, stages);
    const LayerForecast forecast = simulate(stages, segments);
    CHECK(forecast.compute_factor <= before);
    CHECK(forecast.saved_fraction() >= 1 - fraction);
    before = forecast.compute_factor;
  }
  CHECK(before == 1);
}

TEST_CASE("layers that return another of their values are measured again") {
  bool is_training = true;
  const LayerModel model{
      .layer = {.parameters = std::vector<std::vector<Tensor>>(6),
                .forward = [&](const Var& x, std::span<const Var>, int) -> LayerOutput {
                  const Var y = sin(x);
                  Var z = y;
                  for (int i = 0; i < 6; ++i) z = tanh(cumsum(z, 0));
                  return is_training ? z : y;
                }}};
  const ValueType input{{64, 64}, DType::f32};
  const LayerCheckpointing given{.mode = Mode::dynamic, .memory_fraction = 0.7};
  LayerCheckpointer layers(model, given);
  for (const bool training : {true, false, true}) {
    is_training = training;
    LayerCheckpointer fresh(model, given);
    CHECK(layers.forecast(input).summary() == fresh.forecast(input).summary());
  }
}

TEST_CASE("layers may not fit in evaluation although they fit in training") {
  bool is_training = true;
  const LayerModel model{
      .layer = {.parameters = std::vector<std::vector<Tensor>>(6),
                .forward = [&](const Var& x, std::span<const Var>, int) -> LayerOutput {
                  Var z = sin(x);
                  for (int i = 0; is_training && i < 6; ++i) z = tanh(cumsum(z, 0));
                  return z;
                }}};
  const Tensor input = Tensor::uniform({64, 64}, 1, -1, 1);
  LayerCheckpointer layers(model, {.mode = Mode::dynamic, .memory_fraction = 0.5});
  layers.forward(input);
  is_training = false;
  CHECK_THROWS_AS(layers.forward(input), BudgetError);
}

}  // namespace
}  // namespace palimpsest::dynamic_test
