#pragma once

#include "autodiff/export.h"
#include "checkpoint/graph.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// A rough description of a network that does not exist yet: the number of its equal layers, and
/// their sizes.
struct LayerSizes {
  int layers = 1;
  Bytes parameters = 0;      ///< of one layer
  Bytes activations = 0;     ///< of one layer's output for the whole batch
  double seconds = 0;        ///< forward time of one layer on one thread
  double backward_part = 2;  ///< time of a layer's gradients, as a multiple of its forward time
  bool training = true;      ///< gradients are wanted
};

/// The graph of such a network: a chain of layers that ends in a scalar loss. For training it
/// includes the backward part, and the gradients of the parameters are targets. Throws
/// `ArgumentError` for fewer than one layer, and for negative numbers.
Graph graph_of(const LayerSizes& sizes);

}  // namespace palimpsest
