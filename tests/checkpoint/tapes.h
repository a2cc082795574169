#pragma once

#include <initializer_list>

#include "autodiff/var.h"

namespace palimpsest::tests {

/// Operations that are planned but never run.
inline const Operation plain{.name = "plain", .formula = {}, .summary = {}};
inline const Operation alias{.name = "alias", .formula = {}, .summary = {}, .view = true};
inline const Operation scratched{
    .name = "scratched",
    .formula = {},
    .summary = {},
    .cost = [](const NodeView&) { return Cost{1e9, 1e6}; },
    .workspace = [](const NodeView&, int threads) { return Bytes{64} * threads; }};

/// Records a node whose outputs have the given numbers of f32 elements.
inline Var record(Tape& tape, const Operation& operation, std::initializer_list<Var> inputs,
                  std::initializer_list<std::int64_t> outputs = {8}) {
  std::vector<ValueType> types;
  for (const std::int64_t elements : outputs) types.push_back({Shape{elements}, DType::f32});
  return tape.record(operation, std::vector<Var>(inputs), types, {}, Where::current());
}

}  // namespace palimpsest::tests
