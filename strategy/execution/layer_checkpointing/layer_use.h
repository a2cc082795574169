#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "autodiff/bytes.h"
#include "autodiff/export.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// The memory and work of one forward and one backward pass through a model.
struct LayerUse {
  /// Bytes held after the forward pass: activations, as they are stored, and tapes.
  Bytes kept = 0;
  /// Most bytes of both at a time, including recomputed ones. The memory of a single layer's run,
  /// the current activation and the returned gradients come on top.
  Bytes peak = 0;
  int kept_activations = 0;  ///< kept on their own, not as part of a tape
  /// By layer, or by sublayer in sequence: how often it was computed forward. Work of a segment's
  /// last layer that only its output needs is not repeated.
  std::vector<int> forward_passes = {};

  /// One line: bytes kept, the peak, and forward passes.
  std::string summary() const;

  bool operator==(const LayerUse&) const = default;
};

/// A prediction of `LayerUse`, compared with keeping every layer's tape.
struct LayerForecast {
  LayerUse use;
  Bytes keep_all = 0;         ///< bytes of the tapes of all layers
  double compute_factor = 1;  ///< time relative to one forward and backward pass, by the machine

  /// Peak bytes saved compared with keeping all. Negative where kept activations take more than
  /// they save.
  Bytes saved() const { return keep_all - use.peak; }
  double saved_fraction() const {
    return keep_all > 0 ? static_cast<double>(saved()) / static_cast<double>(keep_all) : 0;
  }
  /// One line: that of the use, the share of `keep_all` and the factor.
  std::string summary() const;
};

std::ostream& operator<<(std::ostream& stream, const LayerUse& use);
std::ostream& operator<<(std::ostream& stream, const LayerForecast& forecast);

}  // namespace palimpsest
