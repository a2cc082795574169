#pragma once

#include <span>
#include <vector>

#include "autodiff/tape.h"

namespace palimpsest {

/// Copies the value of each update to its target.
void apply_updates(std::span<const Tape::Update> updates, std::span<const Tensor> values);

/// The mean of the values of several parts of a batch, weighted by their numbers of examples. The
/// terms are added in order, in f64.
Tensor mean_of_parts(std::span<const Tensor> values, std::span<const std::int64_t> examples);

}  // namespace palimpsest
