#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "strategy/execution/layer_checkpointing/layer_checkpointing.h"
#include "strategy/execution/layer_checkpointing/layer_use.h"

namespace palimpsest {

/// The memory and time of a layer, or of one of its sublayers.
struct LayerStage {
  Bytes input = 0;         ///< bytes of its input activation
  Bytes stored_input = 0;  ///< bytes of that input as it is kept
  Bytes saved = 0;         ///< bytes that it makes and its backward part reads
  Bytes output = 0;        ///< bytes of its output, where those are not among `saved`
  double pass = 0;         ///< seconds of a forward pass
  double record = 0;       ///< seconds of a forward pass that saves what the backward part reads
  double save = 0;         ///< seconds of computing only the saved values
  double backward = 0;     ///< seconds of its backward part
  bool saves = true;       ///< its backward part reads something that it makes, maybe of no bytes
  bool flows = true;       ///< the adjoint of its input depends on that of its output
};

/// Stages [first, last) that are treated alike.
struct LayerSegment {
  std::size_t first;
  std::size_t last;
  /// Their tapes are kept. Otherwise the first stage's input is kept, and the stages are recomputed
  /// from it.
  bool taped;
  /// Their tapes are dropped after they have been reversed; a later reversal recomputes them.
  bool once = false;

  bool operator==(const LayerSegment&) const = default;
};

/// The numbers of layers and of sublayers per layer, one or two.
struct LayerCount {
  int layers;
  int sublayers;

  std::size_t stages() const { return static_cast<std::size_t>(layers * sublayers); }
};

/// The stages, except the first, whose inputs a configuration keeps; for `dynamic`, those whose
/// inputs it may keep. Throws `ArgumentError` for a listed layer that does not exist, and for
/// inputs of feed-forward sublayers where layers have none.
std::vector<std::size_t> boundaries_of(const LayerCheckpointing& checkpointing, LayerCount count);

/// The segments of `none`, `every` and `listed`. `none` has one segment, which is taped. In the
/// other modes the last segment is taped once: it is reversed first, so recomputing its tapes would
/// take as much memory. With a codec that rounds it is not taped, since its gradients are those at
/// the rounded input.
std::vector<LayerSegment> fixed_segments(const LayerCheckpointing& checkpointing, LayerCount count);

/// Simulates the segments on stages of known size. Segments before a stage that passes no
/// derivative to its input are only run forward.
LayerForecast simulate(std::span<const LayerStage> stages, std::span<const LayerSegment> segments);

/// Whether the input of a segment is kept on its own: it is neither the caller's nor part of a
/// tape.
bool keeps_input(std::span<const LayerSegment> segments, std::size_t index);

}  // namespace palimpsest
