#pragma once

#include <cstdint>
#include <vector>

#include "autodiff/tape.h"

namespace palimpsest {

/// What is known of nodes: those that have to run and, of these, those that can run in groups. Of
/// values: those that are there already, and those that are asked for or read by nodes that are not
/// elementwise.
struct KnownOfTape {
  const std::vector<bool>& needed;
  const std::vector<bool>& pointwise;
  const std::vector<bool>& present;
  const std::vector<bool>& read_whole;
};

/// The value whose elements `value` shows, views looked through; what is `present` stands by
/// itself.
inline ValueId behind_views(const Tape& tape, const std::vector<bool>& present, ValueId value) {
  while (!present[value] && tape.operation(tape.producer(value)).view) {
    value = tape.inputs(tape.producer(value))[0];
  }
  return value;
}

/// By value, how often nodes that have to run read it.
inline std::vector<std::uint32_t> count_readers(const Tape& tape, const KnownOfTape& known) {
  std::vector<std::uint32_t> readers(tape.value_count());
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (!known.needed[node]) continue;
    for (const ValueId input : tape.inputs(node)) ++readers[input];
  }
  return readers;
}

}  // namespace palimpsest
