#pragma once

#include <span>

#include "autodiff/tensor.h"
#include "strategy/mpi/rank_link.h"

namespace palimpsest {

/// Of all elements of all tensors.
std::uint64_t hash_of(std::span<const Tensor> parameters);

/// Throws `ArgumentError` for a tensor that holds nothing, `DTypeError` for one that is not
/// floating.
void require_parameters(std::span<const Tensor> parameters);

/// Gives the parameters of all ranks the elements that they have on rank 0, and looks whether they
/// do. Throws `RankError` for parameters of other types. All ranks.
void broadcast_parameters(RankLink& link, std::span<const Tensor> parameters);

/// Throws `RankError` that names the first rank, and the first of its parameters, whose elements
/// are not those on rank 0. All ranks.
void verify_parameters(RankLink& link, std::span<const Tensor> parameters);

/// The same, when hashes are known to differ.
[[noreturn]] void blame_parameters(RankLink& link, std::span<const Tensor> parameters);

}  // namespace palimpsest
