#pragma once

#include <cstdint>
#include <vector>

#include "autodiff/tape.h"

namespace palimpsest {

/// Facts about a tape. By node: whether it has to run, and whether it can run in groups. By value:
/// whether it is present, and whether it must be in memory, because it is a target or a node that
/// is not elementwise reads it.
struct KnownOfTape {
  const std::vector<bool>& needed;
  const std::vector<bool>& pointwise;
  const std::vector<bool>& present;
  const std::vector<bool>& read_whole;
};

/// The value whose storage `value` shares, looking through views. Stops at a `present` value.
inline ValueId behind_views(const Tape& tape, const std::vector<bool>& present, ValueId value) {
  while (!present[value] && tape.operation(tape.producer(value)).view) {
    value = tape.inputs(tape.producer(value))[0];
  }
  return value;
}

/// By value: how many times nodes that have to run read it.
inline std::vector<std::uint32_t> count_readers(const Tape& tape, const KnownOfTape& known) {
  std::vector<std::uint32_t> readers(tape.value_count());
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (!known.needed[node]) continue;
    for (const ValueId input : tape.inputs(node)) ++readers[input];
  }
  return readers;
}

}  // namespace palimpsest
