#pragma once

#include "checkpoint/graph.h"

namespace palimpsest {

/// What is known of a network before there is one: that it has some equal layers, and how large
/// these are.
struct LayerSizes {
  int layers = 1;
  Bytes parameters = 0;      ///< of one layer
  Bytes activations = 0;     ///< that one layer makes of the whole batch
  double seconds = 0;        ///< that one layer takes forward, on one thread
  double backward_part = 2;  ///< how many times as long its gradients take
  bool training = true;      ///< gradients are wanted
};

/// Its graph: a chain of layers that ends in a number and, for training, their gradients, of which
/// those of the parameters are asked for. Throws `ArgumentError` for fewer than one layer, and for
/// negative numbers.
Graph graph_of(const LayerSizes& sizes);

}  // namespace palimpsest
