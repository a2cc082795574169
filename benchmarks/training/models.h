#pragma once

#include "benchmarks/models.h"

namespace palimpsest::benchmarks {

/// The models that the suites `training` and `peers` time, in f32, written as a user would write
/// them. benchmarks/peers/models.py holds the same models for PyTorch.
///
/// - `mlp`: 784-1024-1024-10, batch 128
/// - `gpt`: 6 blocks of width 384 and 6 heads, 256 tokens, batch 8
/// - `conv`: two convolutions of 3×3 to 32 and 64 channels on 28×28, batch 64
/// - `lstm`: 200 steps, 256 input features and 256 hidden ones, batch 32
/// - `rnn`: the same with a tanh cell of single operations
/// - `pde`: advection and diffusion on 10⁴ periodic cells, 2,000 explicit steps of ten elementwise
///   operations and two rolls, differentiated by the initial state, the velocity and the
///   diffusivity
/// - `small_pde`: the same on 10² cells
/// - `small_mlp`: 16-16-16, batch 16
std::vector<Model> training_models();

/// Repeated additions of one vector of four elements to another, both differentiated.
Model tiny_additions();
inline constexpr int tiny_nodes = 1000;

/// Throws `std::out_of_range` when there is no model of that name.
Model training_model(const std::string& name);

}  // namespace palimpsest::benchmarks
