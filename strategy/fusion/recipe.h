#pragma once

#include <algorithm>
#include <vector>

#include "strategy/fusion/groups.h"

namespace palimpsest {

/// Calls `f(value, in_order)` with each value that a node reads from memory or from its group.
template <class F>
void for_readings(const Tape& tape, const Readings& readings, NodeId node, F f) {
  for (std::size_t i = 0; i < tape.inputs(node).size(); ++i) {
    if (!readings.is_pointwise(node)) {
      f(tape.inputs(node)[i], false);
      continue;
    }
    const Reading reading = readings.of(node, i);
    for (const ReadPart& part : reading.parts) {
      if (part.value != none && !readings.is_number(part.value)) f(part.value, reading.in_order);
    }
  }
}

/// The nodes of a group that make one of its values again, and what they read.
struct Recipe {
  ValueId value;
  std::vector<NodeId> nodes;
  std::vector<ValueId> inputs;
};

/// The recipe for a value of `unit` from what other units make and what `is_there`.
template <class IsThere>
Recipe recipe_for(const Tape& tape, const Readings& readings, const Unit& unit, ValueId value,
                  IsThere is_there) {
  Recipe recipe{value, {}, {}};
  std::vector<NodeId> open{tape.producer(value)};
  while (!open.empty()) {
    // The latest first: what it reads lies before it.
    const auto latest = std::max_element(open.begin(), open.end());
    const NodeId node = *latest;
    open.erase(latest);
    recipe.nodes.push_back(node);
    for_readings(tape, readings, node, [&](ValueId input, bool) {
      const NodeId producer = tape.producer(input);
      if (!unit.makes(producer) || is_there(input)) {
        recipe.inputs.push_back(input);
      } else if (std::find(open.begin(), open.end(), producer) == open.end()) {
        open.push_back(producer);
      }
    });
  }
  return recipe;
}

}  // namespace palimpsest
