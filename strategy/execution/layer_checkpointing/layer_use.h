#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "autodiff/bytes.h"

namespace palimpsest {

/// What one forward and one backward pass through a model hold and compute.
struct LayerUse {
  /// Bytes held behind the forward pass: activations, as they are stored, and tapes.
  Bytes kept = 0;
  /// Most bytes of both at a time, those computed again among them. What the run of one layer takes
  /// for itself comes on top, as do the activation at hand and the gradients returned.
  Bytes peak = 0;
  int kept_activations = 0;  ///< on their own, not as part of a tape
  /// By layer, of one with sublayers one behind the other: times that it was computed forward. What
  /// the last layer of a segment makes only for its output is not computed again.
  std::vector<int> forward_passes = {};

  /// One line: bytes kept, the peak, and passes forward.
  std::string summary() const;

  bool operator==(const LayerUse&) const = default;
};

/// What `LayerUse` will be, against keeping every layer's tape.
struct LayerForecast {
  LayerUse use;
  Bytes keep_all = 0;  ///< bytes of the tapes of all layers
  double compute_factor =
      1;  ///< seconds over those of a forward and a backward pass, by the machine

  /// Bytes that are not held when most are; negative where activations kept take more than they
  /// save.
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
