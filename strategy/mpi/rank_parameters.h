#pragma once

#include <span>

#include "autodiff/tensor.h"
#include "strategy/mpi/rank_link.h"

namespace palimpsest {

/// A hash of all elements of all tensors.
std::uint64_t hash_of(std::span<const Tensor> parameters);

/// Throws `ArgumentError` for an undefined tensor, `DTypeError` for one that is not floating.
void require_parameters(std::span<const Tensor> parameters);

/// Copies the elements of rank 0's parameters to all ranks, and verifies the result. Throws
/// `RankError` for parameters of other types. All ranks call it.
void broadcast_parameters(RankLink& link, std::span<const Tensor> parameters);

/// Throws `RankError` that names the first rank, and the first of its parameters, whose elements
/// differ from those on rank 0. All ranks call it.
void verify_parameters(RankLink& link, std::span<const Tensor> parameters);

/// Likewise, when hashes are known to differ.
[[noreturn]] void blame_parameters(RankLink& link, std::span<const Tensor> parameters);

/// Throws `RankError` that names the first rank whose batch differs from that of rank 0, when sizes
/// or hashes are known to differ. All ranks call it.
[[noreturn]] void blame_batch(RankLink& link, std::span<const Tensor> batch);

}  // namespace palimpsest
