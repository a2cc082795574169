#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "autodiff/tape.h"

namespace palimpsest {

/// What a tape recorded, short enough to be compared over ranks. Unlike the signature that plans
/// are found by, it means the same in every process: operations count by their names.
struct TapeDigest {
  /// Operations, what each reads, dtypes and numbers of axes: what ranks have in common whose
  /// shards are not equally large.
  std::uint64_t structure = 0;
  std::uint64_t shapes = 0;  ///< of all values
  NodeId nodes = 0;
};

TapeDigest digest_of(const Tape& tape);

/// Of tensors: their types.
std::uint64_t digest_of(std::span<const Tensor> tensors);

/// Lines in which one program differs from another, node by node; with shapes or without.
void append_lines(const Tape& tape, NodeId nodes, bool with_shapes,
                  std::vector<std::string>& lines);
void append_lines(std::span<const Tensor> parameters, std::vector<std::string>& lines);

}  // namespace palimpsest
