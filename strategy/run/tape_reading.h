#pragma once

#include <string>

#include "autodiff/tape.h"
#include "checkpoint/meter.h"

namespace palimpsest {

/// The value whose storage a view shares: follows inputs back to the first node that is not a view.
inline ValueId behind_views(const Tape& tape, ValueId value) {
  while (tape.operation(tape.producer(value)).view) value = tape.inputs(tape.producer(value))[0];
  return value;
}

/// `scope/name` of a node, without the slash where it has only one of the two.
inline std::string scoped_name(const Tape& tape, NodeId node) {
  std::string name(tape.scope_of(node));
  if (!name.empty() && !tape.name(node).empty()) name += '/';
  return name.append(tape.name(node));
}

/// A tensor whose storage the meter counts.
inline Tensor new_tensor(const Meter& meter, const ValueType& type) {
  return Tensor(meter.allocate(type.bytes()), type.shape, type.dtype);
}

}  // namespace palimpsest
