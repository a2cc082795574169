#pragma once

#include "benchmarks/models.h"

namespace palimpsest::benchmarks {

/// A training step to plan.
struct Network {
  std::string name;
  std::function<Graph()> graph;  ///< each call builds the graph anew
};

/// Well-known networks recorded from our own operations. They are narrow and use large batches, so
/// that activations outweigh parameters by far. VGG-16 (Simonyan and Zisserman, 2015), ResNet-50
/// (He et al., 2016), U-Net (Ronneberger et al., 2015), DenseNet-121 (Huang et al., 2017),
/// transformers of 12 and 48 blocks, a recurrent network of 500 steps.
std::vector<Network> networks();

/// The graphs in the folder that the environment variable PALIMPSEST_GRAPHS names, by name; empty
/// when it is not set.
std::vector<Network> published_networks();

/// The graph that a planner gets for a loss and the gradients of all parameters, on one thread.
Graph gradient_graph(const std::function<Var(Tape&)>& record_loss);

}  // namespace palimpsest::benchmarks
