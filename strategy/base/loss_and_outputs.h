#pragma once

#include <concepts>
#include <utility>
#include <vector>

#include "autodiff/export.h"
#include "autodiff/var.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// A loss, and auxiliary outputs: further values that the caller needs from the same run, such as
/// logits, an accuracy or the state of a recurrent network. All are recorded on one tape. They
/// count towards the budget until the run ends. A `Var` converts to a loss without outputs.
struct LossAndOutputs {
  // NOLINTNEXTLINE(google-explicit-constructor): a loss is a loss without outputs
  LossAndOutputs(const Var& scalar, std::vector<Var> values = {})
      : loss(scalar), outputs(std::move(values)) {}

  Var loss;
  std::vector<Var> outputs;
};

/// A list of values, as in `{logits, state}`.
class Outputs {
 public:
  // NOLINTBEGIN(google-explicit-constructor): written in braces
  Outputs(std::vector<Var> values) : values_(std::move(values)) {}
  template <std::same_as<Var>... Others>
  Outputs(const Var& first, const Others&... others) : values_{first, others...} {}
  // NOLINTEND(google-explicit-constructor)

  const std::vector<Var>& values() const { return values_; }

 private:
  std::vector<Var> values_;
};

}  // namespace palimpsest
