#pragma once

#include <Eigen/Core>

#include "autodiff/kernels/blocks.h"

/// Blocks as Eigen's arrays, which formulas are written for.
namespace palimpsest::PALIMPSEST_LEVEL {

template <class T>
using ArrayBlock = Eigen::Map<Eigen::Array<T, block_size<T>, 1>>;
template <class T>
using ConstArrayBlock = Eigen::Map<const Eigen::Array<T, block_size<T>, 1>>;

}  // namespace palimpsest::PALIMPSEST_LEVEL
