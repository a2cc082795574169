#include "autodiff/composition.h"

#include "autodiff/operations/leaf.h"
#include "autodiff/require_function.h"

namespace palimpsest {

void pull_back_through(const Pullback& p, const Composition& f) {
  std::vector<Var> inputs;
  for (std::size_t i = 0; i < p.input_count(); ++i) inputs.push_back(p.input(i));
  pull_back_through(p, f, inputs);
}

void pull_back_through(const Pullback& p, const Composition& f, std::span<const Var> at) {
  Tape& tape = p.tape();
  const Where where = p.where();
  detail::require_function(f, "pull_back_through", "the composition", "records the operation",
                           where);
  std::vector<Var> inputs;
  std::vector<Var> xs;
  for (std::size_t i = 0; i < at.size(); ++i) {
    // The identity stops the backward walk at the nodes recorded here. Outside of a gradient it is
    // blocked, and with it every path through this composition. It also prevents merging with
    // common subexpressions recorded elsewhere.
    inputs.push_back(identity(at[i], where));
    if (p.wants(i)) xs.push_back(inputs.back());
  }
  const Tape::WithGradient differentiable(tape);
  const std::vector<Var> outputs = f(inputs);
  if (outputs.size() != p.output_count()) {
    throw ArgumentError("pull_back_through",
                        "the composition returns " + std::to_string(outputs.size()) +
                            " values for an operation with " + std::to_string(p.output_count()) +
                            " outputs; return one value per output",
                        where);
  }
  std::vector<Var> ys;
  std::vector<Var> seeds;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!p.has_adjoint(i)) continue;
    ys.push_back(outputs[i]);
    seeds.push_back(p.adjoint(i));
  }
  const std::vector<Var> gradients = vjp(ys, xs, seeds, where);
  auto gradient = gradients.begin();
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (p.wants(i)) p.set(i, *gradient++);
  }
  for (std::size_t i = at.size(); i < p.input_count(); ++i) p.set_none(i);
}

}  // namespace palimpsest
