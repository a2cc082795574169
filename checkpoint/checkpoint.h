#pragma once

#include <concepts>
#include <span>
#include <vector>

#include "autodiff/composition.h"
#include "autodiff/operations/binary.h"

namespace palimpsest {

/// f(inputs) as one operation that keeps nothing between its inputs and its outputs: what lies
/// between is freed while it runs, and recorded and computed again where a derivative needs it.
///
/// `f` is called once, here; what it captures by reference need not live longer. Values of the tape
/// that it uses without being given them become further inputs and get their gradients. Random
/// operations draw the same numbers again. Checkpoints nest and have derivatives of any order. The
/// forward run takes its workspace (the most that lives at once in between) and its outputs, no
/// more. `Var`s that `f` recorded, other than those returned to you here, must not be used
/// afterwards. Throws `ArgumentError` when `f` returns nothing or records a parameter.
std::vector<Var> checkpoint(const Composition& f, std::span<const Var> inputs,
                            Where where = Where::current());

/// `f` of one or more Vars; it returns a Var or a `std::vector<Var>`, and so does this.
template <class F, std::same_as<Var>... Rest>
  requires std::invocable<F&, const Var&, const Rest&...>
auto checkpoint(F&& f, const Located& first, const Rest&... rest) {
  using Result = std::invoke_result_t<F&, const Var&, const Rest&...>;
  const Var inputs[] = {first.var, rest...};
  const auto call = [&](std::span<const Var> xs) -> std::vector<Var> {
    return [&]<std::size_t... i>(std::index_sequence<i...>) -> std::vector<Var> {
      return {f(xs[i]...)};
    }(std::make_index_sequence<1 + sizeof...(Rest)>{});
  };
  const std::vector<Var> outputs = checkpoint(Composition(call), inputs, first.where);
  if constexpr (std::same_as<Result, Var>) {
    return outputs[0];
  } else {
    return outputs;
  }
}

}  // namespace palimpsest
