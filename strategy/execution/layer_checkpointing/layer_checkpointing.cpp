#include "strategy/execution/layer_checkpointing/layer_checkpointing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ostream>

#include "autodiff/enumerators.h"
#include "autodiff/error.h"
#include "autodiff/number_text.h"
#include "checkpoint/stores/codec_option.h"

namespace palimpsest {
namespace {

using Mode = LayerCheckpointing::Mode;

void require(bool condition, const std::string& problem) {
  if (!condition) throw ArgumentError("[layers] " + problem);
}

void require_at_least(const std::optional<int>& number, int least, const char* name) {
  require(!number || *number >= least, std::string(name) + " is " +
                                           std::to_string(number.value_or(0)) + "; give " +
                                           std::to_string(least) + " or more");
}

void require_list(const LayerCheckpointing& given) {
  require(!given.layers.empty(),
          "the list of layers is empty; name the layers whose inputs are kept");
  std::vector<int> sorted = given.layers;
  std::sort(sorted.begin(), sorted.end());
  require(sorted.front() >= 0,
          "layer " + std::to_string(sorted.front()) + " is listed; layers are numbered from 0");
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  require(twice == sorted.end(), "layer " + (twice == sorted.end() ? "" : std::to_string(*twice)) +
                                     " is listed twice; name it once");
  // The input of layer 0 is the caller's, so it does not count.
  const auto count = static_cast<std::int64_t>(sorted.size());
  const std::int64_t kept = (given.sublayers.attention ? count - (sorted.front() == 0) : 0) +
                            (given.sublayers.feed_forward ? count : 0);
  require(!given.max_kept || kept <= *given.max_kept,
          "the list keeps " + std::to_string(kept) + " activations, more than max_kept = " +
              std::to_string(given.max_kept.value_or(0)) + "; list fewer layers or raise max_kept");
}

}  // namespace

std::string_view name_of(LayerCheckpointing::Mode mode) {
  static constexpr std::array<std::string_view, 4> names{"none", "every", "listed", "dynamic"};
  return names[static_cast<std::size_t>(mode)];
}

std::string LayerCheckpointing::summary() const {
  std::string text(name_of(mode));
  if (interval) text += " " + std::to_string(*interval) + (*interval == 1 ? " layer" : " layers");
  for (std::size_t i = 0; i < layers.size(); ++i) {
    text += (i == 0 ? " " : ", ") + std::to_string(layers[i]);
  }
  const auto add = [&](const std::string& part) { text += ", " + part; };
  if (memory_fraction) {
    add(std::to_string(std::lround(*memory_fraction * 100)) + " % of the tapes");
  }
  if (minimum_interval) add("at least " + std::to_string(*minimum_interval) + " layers");
  if (sublayers.feed_forward) {
    add(sublayers.attention ? "inputs of attention and feed-forward" : "inputs of feed-forward");
  }
  if (max_kept) add("at most " + std::to_string(*max_kept) + " kept");
  if (codec != Codec::exact) add("kept as " + std::string(name_of(codec)));
  return text;
}

std::ostream& operator<<(std::ostream& stream, const LayerCheckpointing& checkpointing) {
  return stream << checkpointing.summary();
}

void require_valid(const LayerCheckpointing& given) {
  const Mode mode = given.mode;
  require_enumerator(mode, {Mode::none, Mode::every, Mode::listed, Mode::dynamic}, "[layers] mode");
  require_codec(given.codec, "[layers] codec");
  require_at_least(given.interval, 1, "interval");
  require_at_least(given.minimum_interval, 1, "minimum_interval");
  require_at_least(given.max_kept, 0, "max_kept");
  require(mode == Mode::every || !given.interval,
          "interval is for mode every only; leave it out, or set mode to every");
  require(
      mode == Mode::every || mode == Mode::dynamic || !given.minimum_interval,
      "minimum_interval is for modes every and dynamic only; leave it out, or set mode to one of "
      "them");
  require(mode == Mode::listed || given.layers.empty(),
          "layers are for mode listed only; leave them out, or set mode to listed");
  require(mode == Mode::dynamic || !given.memory_fraction,
          "memory_fraction is for mode dynamic only; leave it out, or set mode to dynamic");
  require(given.sublayers.attention || given.sublayers.feed_forward,
          "neither sublayer's input is kept; choose one or both, or mode none");
  if (mode == Mode::none) {
    require(!given.max_kept && given.codec == Codec::exact &&
                given.sublayers == LayerCheckpointing::Sublayers{},
            "mode none keeps tapes, not activations: it takes no max_kept, codec or sublayers; "
            "leave them out, or choose another mode");
  }
  if (mode == Mode::every) {
    require(given.interval.has_value(),
            "mode every needs an interval; give 2 to keep the input of every second layer");
    require(*given.interval >= given.minimum_interval.value_or(1),
            "interval " + std::to_string(*given.interval) + " is below minimum_interval " +
                std::to_string(given.minimum_interval.value_or(1)) +
                "; raise interval or lower minimum_interval");
    require(!given.sublayers.feed_forward || given.max_kept != 0,
            "max_kept is 0, but the input of layer 0's feed-forward is kept at any interval; give "
            "1 or more, or keep only the inputs of attention");
  }
  if (mode == Mode::listed) require_list(given);
  if (mode == Mode::dynamic) {
    require(given.memory_fraction.has_value(),
            "mode dynamic needs a memory_fraction; give the fraction of all layers' tapes that may "
            "be held");
    require(*given.memory_fraction > 0 && *given.memory_fraction <= 1,
            "memory_fraction is " + number_text(*given.memory_fraction) +
                "; give a fraction above 0 and at most 1");
  }
}

}  // namespace palimpsest
