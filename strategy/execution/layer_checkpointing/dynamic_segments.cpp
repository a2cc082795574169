#include "strategy/execution/layer_checkpointing/dynamic_segments.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>

#include "autodiff/number_text.h"
#include "checkpoint/plan.h"

namespace palimpsest {
namespace {

/// The stages between two boundaries. They always share a segment.
struct Block {
  std::size_t first;
  Bytes input;
  Bytes stored_input;
  Bytes tape = 0;    ///< bytes, including what the next block reads
  Bytes output = 0;  ///< bytes of `tape` for an output that is held only for the next block
  // In integer picoseconds, so that sums and ties are exact.
  std::int64_t again = 0;   ///< to recompute it
  std::int64_t spared = 0;  ///< saved where only its tape is read, and not its output
};

std::vector<Block> blocks_of(std::span<const LayerStage> stages,
                             std::span<const std::size_t> boundaries) {
  std::vector<Block> blocks;
  for (std::size_t k = 0; k < stages.size(); ++k) {
    const LayerStage& stage = stages[k];
    if (k == 0 || std::binary_search(boundaries.begin(), boundaries.end(), k)) {
      blocks.push_back({k, stage.input, stage.stored_input});
    }
    Block& block = blocks.back();
    block.output = k + 1 < stages.size() ? stage.output : 0;
    block.tape += stage.saved + block.output;
    block.again += std::llround(stage.pass * 1e12);
    block.spared = std::llround((stage.record - stage.save) * 1e12);
  }
  return blocks;
}

/// A partial solution: how the blocks before some boundary are treated.
struct Label {
  Bytes bytes = 0;            ///< kept
  std::int64_t again = 0;     ///< picoseconds of recomputation
  int kept = 0;               ///< activations
  std::size_t from = 0;       ///< where its last segment begins
  bool from_at_hand = false;  ///< whether the activation there needed no keeping
  std::size_t before = 0;     ///< the label at `from`
};

class Search {
 public:
  Search(const LayerCheckpointing& given, LayerCount count, std::span<const LayerStage> stages)
      : given_(given),
        per_layer_(static_cast<std::size_t>(count.sublayers)),
        stage_count_(stages.size()),
        blocks_(blocks_of(stages, boundaries_of(given, count))),
        tapes_(1, 0),
        again_(1, 0) {
    for (const Block& block : blocks_) {
      tapes_.push_back(tapes_.back() + block.tape);
      again_.push_back(again_.back() + block.again);
    }
    list_sizes();
    by_value_.resize(blocks_.size());
    std::iota(by_value_.begin(), by_value_.end(), std::size_t{0});
    std::sort(by_value_.begin(), by_value_.end(),
              [&](std::size_t a, std::size_t b) { return value(a) > value(b); });
  }

  Bytes keep_all() const { return tapes_.back(); }

  struct Found {
    std::int64_t again = std::numeric_limits<std::int64_t>::max();
    Bytes peak = std::numeric_limits<Bytes>::max();
    std::vector<LayerSegment> segments;
  };
  /// The best within `budget`. Ignores seconds unless they matter.
  Found run(Bytes budget, bool seconds_matter) {
    Found best;
    for (const Bytes size : sizes_) {
      if (size > budget) break;
      if (seconds_matter && static_cast<double>(best.again) < least_again(budget - size)) break;
      fill(size, budget - size, seconds_matter, best.again);
      for (const bool at_hand : {true, false}) {
        const auto& ends = fronts_.back()[at_hand];
        for (std::size_t i = 0; i < ends.size(); ++i) {
          const Label& end = ends[i];
          const Bytes peak = end.bytes + size;
          if (std::pair(end.again, peak) >= std::pair(best.again, best.peak)) continue;
          best = {end.again, peak, segments_to(at_hand, i)};
        }
      }
    }
    return best;
  }

 private:
  using Front = std::array<std::vector<Label>, 2>;  // by whether the activation is available
                                                    // without keeping it

  /// Bytes that recomputing blocks [p, q) takes. `at_hand`: their input is available without
  /// keeping.
  Bytes working(std::size_t p, std::size_t q, bool at_hand) const {
    const Block& first = blocks_[p];
    const bool rounded = !at_hand && first.stored_input < first.input;
    return tapes_[q] - tapes_[p] - blocks_[q - 1].output + (rounded ? first.input : 0);
  }
  bool long_enough(std::size_t p, std::size_t q) const {
    if (q == blocks_.size() || !given_.minimum_interval) return true;
    const auto least = static_cast<std::size_t>(*given_.minimum_interval) * per_layer_;
    return blocks_[q].first - blocks_[p].first >= least;
  }

  /// Lists all sizes that the largest recomputed segment may have.
  void list_sizes() {
    std::set<Bytes> sizes{0};
    for (std::size_t p = 0; p < blocks_.size(); ++p) {
      for (std::size_t q = p + 1; q <= blocks_.size(); ++q) {
        for (const bool at_hand : {true, false}) sizes.insert(working(p, q, at_hand));
      }
    }
    sizes_.assign(sizes.begin(), sizes.end());
  }

  /// A lower bound on the recomputation when tapes of so many bytes are kept: the relaxed knapsack.
  double least_again(Bytes capacity) const {
    double least = 0;
    for (const std::size_t b : by_value_) {
      const Bytes taken = std::min(blocks_[b].tape, capacity);
      capacity -= taken;
      if (taken < blocks_[b].tape) least += value(b) * static_cast<double>(blocks_[b].tape - taken);
    }
    return least * (1 - 1e-12);  // rounding must not lift it above the exact number
  }
  /// Picoseconds that each byte of a block's tape saves.
  double value(std::size_t b) const {
    return static_cast<double>(blocks_[b].again - blocks_[b].spared) /
           static_cast<double>(std::max<Bytes>(blocks_[b].tape, 1));
  }

  /// Finds all labels in which no recomputed segment takes more than `size`.
  void fill(Bytes size, Bytes budget, bool seconds_matter, std::int64_t most) {
    const std::size_t n = blocks_.size();
    fronts_.assign(n + 1, {});
    fronts_[0][true].push_back({});
    const auto add = [&](std::size_t at, bool at_hand, const Label& label) {
      if (label.bytes > budget || label.again > most) return;
      if (given_.max_kept && label.kept > *given_.max_kept) return;
      fronts_[at][at_hand].push_back(label);
    };
    for (std::size_t p = 0; p < n; ++p) {
      const Block& block = blocks_[p];
      for (const bool at_hand : {true, false}) {
        auto& front = fronts_[p][at_hand];
        thin_out(front);
        for (std::size_t i = 0; i < front.size(); ++i) {
          const Label label = front[i];
          const int kept = label.kept + !at_hand;
          add(p + 1, true,
              {label.bytes + block.tape + (at_hand ? 0 : block.input), label.again, kept, p,
               at_hand, i});
          for (std::size_t q = p + 1; q <= n && working(p, q, at_hand) <= size; ++q) {
            if (!long_enough(p, q)) continue;
            const std::int64_t again = again_[q] - again_[p] - blocks_[q - 1].spared;
            add(q, false,
                {label.bytes + (at_hand ? 0 : block.stored_input),
                 label.again + (seconds_matter ? again : 0), kept, p, at_hand, i});
          }
        }
      }
    }
  }

  /// Removes dominated labels.
  void thin_out(std::vector<Label>& front) const {
    std::stable_sort(front.begin(), front.end(), [](const Label& a, const Label& b) {
      return std::tuple(a.bytes, a.again, a.kept) < std::tuple(b.bytes, b.again, b.kept);
    });
    // The least time of the remaining labels that keep at most so many activations.
    std::vector<std::int64_t> least(blocks_.size() + 1, std::numeric_limits<std::int64_t>::max());
    std::erase_if(front, [&](const Label& label) {
      // Without a limit on kept activations their number does not matter.
      const std::size_t kept = given_.max_kept ? static_cast<std::size_t>(label.kept) : 0;
      if (least[kept] <= label.again) return true;
      for (std::size_t k = kept; k < least.size() && least[k] > label.again; ++k) {
        least[k] = label.again;
      }
      return false;
    });
  }

  std::vector<LayerSegment> segments_to(bool at_hand, std::size_t index) const {
    std::vector<LayerSegment> segments;
    for (std::size_t at = blocks_.size(); at > 0;) {
      const Label& label = fronts_[at][at_hand][index];
      const std::size_t last = at < blocks_.size() ? blocks_[at].first : stage_count_;
      if (at_hand && !segments.empty() && segments.back().taped) {
        segments.back().first = blocks_[label.from].first;
      } else {
        segments.push_back({blocks_[label.from].first, last, at_hand});
      }
      at = label.from;
      at_hand = label.from_at_hand;
      index = label.before;
    }
    std::reverse(segments.begin(), segments.end());
    return segments;
  }

  const LayerCheckpointing& given_;
  std::size_t per_layer_;  // stages per layer
  std::size_t stage_count_;
  std::vector<Block> blocks_;
  std::vector<Bytes> tapes_;           // bytes before each block
  std::vector<std::int64_t> again_;    // picoseconds before each block
  std::vector<std::size_t> by_value_;  // block indices, most valuable first
  std::vector<Bytes> sizes_;
  std::vector<Front> fronts_;  // by boundary
};

Bytes part_of(double keep_all, double fraction) { return static_cast<Bytes>(fraction * keep_all); }

/// The smallest fraction, to six digits, that allows so many bytes, as text.
std::string fraction_for(Bytes least, double keep_all) {
  double millionths = std::ceil(static_cast<double>(least) / keep_all * 1e6);
  while (millionths < 1e6 && part_of(keep_all, millionths / 1e6) < least) ++millionths;
  return number_text(std::min(1.0, millionths / 1e6));
}

}  // namespace

std::vector<LayerSegment> dynamic_segments(const LayerCheckpointing& given, LayerCount count,
                                           std::span<const LayerStage> stages) {
  Search search(given, count, stages);
  const auto keep_all = static_cast<double>(search.keep_all());
  const Bytes budget = part_of(keep_all, *given.memory_fraction);
  const Search::Found found = search.run(budget, true);
  if (!found.segments.empty()) return found.segments;
  const Bytes least = search.run(unlimited / 2, false).peak;
  throw BudgetError("[layers] memory_fraction " + number_text(*given.memory_fraction) + " of the " +
                        format_bytes(search.keep_all()) + " for the tapes of all layers is " +
                        format_bytes(budget) + "; the smallest feasible peak is " +
                        format_bytes(least) + "; raise memory_fraction to " +
                        fraction_for(least, keep_all) +
                        (given.max_kept ? ", or raise max_kept" : "") +
                        (given.minimum_interval ? ", or lower minimum_interval" : ""),
                    budget, least);
}

}  // namespace palimpsest
