#pragma once

#include "benchmarks/models.h"

namespace palimpsest::benchmarks {

/// A training step to be planned.
struct Network {
  std::string name;
  std::function<Graph()> graph;  ///< made anew by each call
};

/// Well-known networks recorded from our own operations, narrow and of large batches, so that
/// activations outweigh parameters by far: VGG-16 (Simonyan and Zisserman, 2015), ResNet-50 (He et
/// al., 2016), U-Net (Ronneberger et al., 2015), DenseNet-121 (Huang et al., 2017), transformers of
/// 12 and 48 blocks, a recurrent network of 500 steps.
std::vector<Network> networks();

/// Those in the folder that the environment variable PALIMPSEST_GRAPHS names, by name; none when it
/// is not set.
std::vector<Network> published_networks();

/// What a planner sees of a loss and the gradients of all parameters, on one thread.
Graph gradient_graph(const std::function<Var(Tape&)>& record_loss);

}  // namespace palimpsest::benchmarks
