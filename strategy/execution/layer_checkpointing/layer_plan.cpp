#include "strategy/execution/layer_checkpointing/layer_plan.h"

#include <algorithm>

#include "autodiff/error.h"

namespace palimpsest {
namespace {

using Mode = LayerCheckpointing::Mode;

/// The number of multiples of n, including 0, below `layers`.
int multiples(int layers, int n) { return (layers - 1) / n + 1; }

/// The interval of `every`, widened until `max_kept` is respected.
int interval_of(const LayerCheckpointing& given, int layers) {
  const auto kept = [&](int interval) {
    const int chosen = multiples(layers, interval);
    return (given.sublayers.attention ? chosen - 1 : 0) +
           (given.sublayers.feed_forward ? chosen : 0);
  };
  int interval = *given.interval;
  while (given.max_kept && interval < layers && kept(interval) > *given.max_kept) ++interval;
  return interval;
}

/// The layers that a configuration selects.
std::vector<int> chosen_layers(const LayerCheckpointing& given, int layers) {
  std::vector<int> chosen;
  if (given.mode == Mode::listed) {
    chosen = given.layers;
    std::sort(chosen.begin(), chosen.end());
    if (chosen.back() >= layers) {
      throw ArgumentError("[layers] layer " + std::to_string(chosen.back()) +
                          " is listed; layers are numbered from 0 to " +
                          std::to_string(layers - 1));
    }
  } else if (given.mode != Mode::none) {
    const int step = given.mode == Mode::every ? interval_of(given, layers) : 1;
    for (int i = 0; i < multiples(layers, step); ++i) chosen.push_back(i * step);
  }
  return chosen;
}

/// Bytes of a stage's tape. They include the output where another stage reads it from the tape.
Bytes tape_bytes(const LayerStage& stage, bool with_output) {
  return stage.saved + (with_output ? stage.output : 0);
}

/// The first stage that is differentiated.
std::size_t first_reached(std::span<const LayerStage> stages) {
  std::size_t k = stages.size();
  while (k > 0 && stages[k - 1].flows) --k;
  return k > 0 ? k - 1 : 0;
}

}  // namespace

std::vector<std::size_t> boundaries_of(const LayerCheckpointing& given, LayerCount count) {
  if (given.sublayers.feed_forward && count.sublayers == 1) {
    throw ArgumentError(
        "[layers] the inputs of feed-forward sublayers are to be kept, but the layers have no "
        "sublayers; give the model attention and feed_forward");
  }
  std::vector<std::size_t> boundaries;
  for (const int layer : chosen_layers(given, count.layers)) {
    const auto stage = static_cast<std::size_t>(layer * count.sublayers);
    if (given.sublayers.attention && stage > 0) boundaries.push_back(stage);
    if (given.sublayers.feed_forward) boundaries.push_back(stage + 1);
  }
  return boundaries;
}

std::vector<LayerSegment> fixed_segments(const LayerCheckpointing& given, LayerCount count) {
  const bool all = given.mode == Mode::none;
  std::vector<LayerSegment> segments{{0, count.stages(), all}};
  for (const std::size_t boundary : boundaries_of(given, count)) {
    segments.back().last = boundary;
    segments.push_back({boundary, count.stages(), false});
  }
  const bool rounds = given.codec != Codec::exact && segments.size() > 1;
  if (!all && !rounds) segments.back().taped = segments.back().once = true;
  return segments;
}

bool keeps_input(std::span<const LayerSegment> segments, std::size_t index) {
  return index > 0 && !segments[index - 1].taped;
}

LayerForecast simulate(std::span<const LayerStage> stages, std::span<const LayerSegment> segments) {
  LayerForecast forecast;
  LayerUse& use = forecast.use;
  const std::size_t reached = first_reached(stages);
  double again = 0;
  double one_pass = 0;
  for (std::size_t k = 0; k < stages.size(); ++k) {
    forecast.keep_all += tape_bytes(stages[k], k + 1 < stages.size());
    one_pass += stages[k].record + (k < reached ? 0 : stages[k].backward);
  }
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const LayerSegment& segment = segments[i];
    if (keeps_input(segments, i)) {
      use.kept += segment.taped ? stages[segment.first].input : stages[segment.first].stored_input;
      ++use.kept_activations;
    }
    for (std::size_t k = segment.first; k < segment.last; ++k) {
      const LayerStage& stage = stages[k];
      if (segment.taped) {
        use.forward_passes.push_back(1);
        use.kept += tape_bytes(stage, k + 1 < stages.size());
      } else if (segment.last <= reached) {
        use.forward_passes.push_back(1);
      } else {
        const bool output_again = k + 1 < segment.last;
        use.forward_passes.push_back(output_again || stage.saves ? 2 : 1);
        again += stage.pass - (output_again ? 0 : stage.record - stage.save);
      }
    }
  }
  use.peak = use.kept;
  // The last segment's tapes have been dropped when an earlier segment is recomputed.
  Bytes held = use.kept;
  if (!segments.empty() && segments.back().once) {
    for (std::size_t k = segments.back().first; k < stages.size(); ++k) {
      held -= tape_bytes(stages[k], k + 1 < stages.size());
    }
  }
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const LayerSegment& segment = segments[i];
    if (segment.taped || segment.last <= reached) continue;
    const bool rounded = keeps_input(segments, i) &&
                         stages[segment.first].stored_input < stages[segment.first].input;
    Bytes working = rounded ? stages[segment.first].input : 0;
    for (std::size_t k = segment.first; k < segment.last; ++k)
      working += tape_bytes(stages[k], k + 1 < segment.last);
    use.peak = std::max(use.peak, held + working);
  }
  if (one_pass > 0) forecast.compute_factor = 1 + again / one_pass;
  return forecast;
}

}  // namespace palimpsest
