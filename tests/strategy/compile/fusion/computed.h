#pragma once

#include <functional>
#include <vector>

#include "palimpsest.h"

namespace palimpsest {

inline const RunOptions as_recorded{.threads = 1, .simplify = false};

/// The values that `record` returns, and the report of their computation.
struct Computed {
  std::vector<Tensor> tensors;
  Report report;
};
using Record = std::function<std::vector<Var>(Tape&)>;

inline Computed compute(const Record& record, RunOptions options) {
  options.profile = true;
  Tape tape;
  tape.set_seed(3);
  const std::vector<Var> values = record(tape);
  Computed computed{{}, evaluate(values, options)};
  for (const Var& value : values) computed.tensors.push_back(value.value());
  return computed;
}

}  // namespace palimpsest
