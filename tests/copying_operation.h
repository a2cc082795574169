#pragma once

#include <algorithm>
#include <functional>
#include <utility>

#include "palimpsest.h"

namespace palimpsest {

/// An operation that copies its input. `adjoint` is called when its derivative is recorded, and
/// returns the adjoint of the input.
inline CustomOperation copying_operation(std::function<Var(const Pullback&)> adjoint) {
  return CustomOperation(
      {.name = "copy",
       .forward =
           [](const CustomCall& call) {
             std::copy_n(call.inputs[0].raw(), call.inputs[0].bytes(), call.outputs[0].raw());
           },
       .vjp = [adjoint = std::move(adjoint)](const Pullback& p) { p.set(0, adjoint(p)); }});
}

}  // namespace palimpsest
