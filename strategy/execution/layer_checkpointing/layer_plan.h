#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "strategy/execution/layer_checkpointing/layer_checkpointing.h"
#include "strategy/execution/layer_checkpointing/layer_use.h"

namespace palimpsest {

/// What a layer, or a sublayer of one, takes.
struct LayerStage {
  Bytes input = 0;         ///< bytes of the activation that it reads
  Bytes stored_input = 0;  ///< bytes of that when it is kept
  Bytes saved = 0;         ///< bytes that it makes and its backward reads
  Bytes output = 0;        ///< bytes of its output, where that is not among those
  double pass = 0;         ///< seconds of a forward pass
  double record = 0;       ///< seconds of one that saves what the backward reads
  double save = 0;         ///< seconds of computing that, and the output as far as it takes it
  double backward = 0;     ///< seconds of its backward
  bool saves = true;       ///< its backward reads something that it makes, of no bytes perhaps
  bool flows = true;       ///< the adjoint of its input depends on that of its output
};

/// Stages [first, last) that are treated alike.
struct LayerSegment {
  std::size_t first;
  std::size_t last;
  /// Their tapes are kept; else they are computed again from the input of the first, which is kept.
  bool taped;
  /// Their tapes go when they have been reversed; a later reversal computes them again.
  bool once = false;

  bool operator==(const LayerSegment&) const = default;
};

/// A model of so many layers, of one or two sublayers each.
struct LayerCount {
  int layers;
  int sublayers;

  std::size_t stages() const { return static_cast<std::size_t>(layers * sublayers); }
};

/// The stages, but for the first, whose inputs a configuration keeps; of `dynamic`, those whose
/// inputs it may keep. Throws `ArgumentError` for a layer listed that is not there, and for inputs
/// of feed-forward sublayers where layers have none.
std::vector<std::size_t> boundaries_of(const LayerCheckpointing& checkpointing, LayerCount count);

/// The segments of `none`, `every` and `listed`. `none` has one, which is taped. Of the others the
/// last is taped once, as it is reversed first: computed again, its tapes would take as much. Where
/// its input is rounded it is not, since its gradients are those at what the input is rounded to.
std::vector<LayerSegment> fixed_segments(const LayerCheckpointing& checkpointing, LayerCount count);

/// Carries segments out on stages of known size. Segments before a stage through which no
/// derivative flows are run forward only.
LayerForecast simulate(std::span<const LayerStage> stages, std::span<const LayerSegment> segments);

/// Whether the input of a segment is kept on its own: not the caller's nor part of a tape.
bool keeps_input(std::span<const LayerSegment> segments, std::size_t index);

}  // namespace palimpsest
