#include "tests/memory/chain.h"

#include <utility>

namespace palimpsest {
namespace {

using Observe = std::function<void()>;

/// Halves the first input if it computes. A single element stands for all of them.
std::function<void(const CustomCall&)> forward(bool computes, const Observe& observe) {
  return [=](const CustomCall& call) {
    const std::span<float> y = call.outputs[0].data<float>();
    const std::span<const float> x = call.inputs[0].data<float>();
    if (computes || y.size() == 1) {
      for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[x.size() < y.size() ? 0 : i] * 0.5f;
    }
    observe();
  };
}

/// An operation with an output of `elements` elements.
CustomDefinition definition(const char* name, std::int64_t elements, bool computes,
                            const Observe& observe) {
  const Shape shape = elements == 1 ? Shape{} : Shape{elements};
  return {.name = name,
          .types = [=](std::span<const ValueType>) { return std::vector{ValueType{shape}}; },
          .forward = forward(computes, observe)};
}

CustomOperation with_derivative(CustomDefinition definition,
                                std::function<void(const Pullback&)> vjp) {
  definition.vjp = std::move(vjp);
  return CustomOperation(std::move(definition));
}

}  // namespace

Chain::Chain(std::int64_t elements, bool computes, Observe observe)
    : spread_(with_derivative(definition("spread", elements, computes, observe),
                              [=](const Pullback& p) {
                                const CustomOperation back(
                                    definition("spread_back", 1, computes, observe));
                                p.set(0, back({p.adjoint()}));
                              })),
      gather_(with_derivative(definition("gather", 1, computes, observe),
                              [=](const Pullback& p) {
                                const CustomOperation back(
                                    definition("gather_back", elements, computes, observe));
                                p.set(0, back({p.adjoint()}));
                              })),
      step_(
          with_derivative(definition("step", elements, computes, observe), [=](const Pullback& p) {
            const CustomOperation back(definition("step_back", elements, computes, observe));
            p.set(0, back({p.adjoint(), p.input(0)}));
          })) {}

Var Chain::record(Tape& tape, int values) const {
  const Var parameter = tape.parameter(Tensor::scalar(1));
  Var y = spread_({parameter});
  for (int i = 1; i < values; ++i) y = step_({y});
  return gather_({y});
}

}  // namespace palimpsest
