#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "autodiff/tape.h"
#include "strategy/base/tape_digest.h"

namespace palimpsest {

/// A digest of a tape's updates: the values they take, their weights, and the types of the targets.
/// Shapes are part of it, since the means of all ranks have one shape.
std::uint64_t digest_of(std::span<const Tape::Update> updates);

/// A digest of the types of tensors.
std::uint64_t digest_of(std::span<const Tensor> tensors);

/// Append lines that describe a program node by node, with or without shapes, so that two programs
/// can be compared.
void append_lines(const Tape& tape, NodeId nodes, bool with_shapes,
                  std::vector<std::string>& lines);
void append_lines(std::span<const Tensor> parameters, std::vector<std::string>& lines);
void append_lines(const Tape& tape, std::span<const Tape::Update> updates,
                  std::vector<std::string>& lines);

}  // namespace palimpsest
