#pragma once

#include <concepts>
#include <span>
#include <utility>
#include <vector>

#include "autodiff/composition.h"
#include "autodiff/located.h"
#include "checkpoint/stores/codec.h"

namespace palimpsest {

/// How a checkpoint keeps what it is computed again from.
struct CheckpointOptions {
  /// Of its floating inputs, but for leaves, which are there anyway, and values used without being
  /// given. Other than exact, the outputs stay exact, and gradients are those of `f` at inputs each
  /// of which has lost the digits that `Codec` says; numbers beyond the end of f16 become infinite.
  /// The narrow copies are made when `f` runs, and serve gradients that are planned: an eager tape
  /// holds them beside what it keeps anyway, and values alone have no use for them.
  Codec codec = Codec::exact;
};

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
std::vector<Var> checkpoint(const CheckpointOptions& options, const Composition& f,
                            std::span<const Var> inputs, Where where = Where::current());

/// `f` of one or more Vars; it returns a Var or a `std::vector<Var>`, and so does this.
template <class F, std::same_as<Var>... Rest>
  requires std::invocable<F&, const Var&, const Rest&...>
auto checkpoint(const CheckpointOptions& options, F&& f, const Located& first,
                const Rest&... rest) {
  using Result = std::invoke_result_t<F&, const Var&, const Rest&...>;
  const Var inputs[] = {first.var, rest...};
  const auto call = [&](std::span<const Var> xs) -> std::vector<Var> {
    return [&]<std::size_t... i>(std::index_sequence<i...>) -> std::vector<Var> {
      return {f(xs[i]...)};
    }(std::make_index_sequence<1 + sizeof...(Rest)>{});
  };
  const std::vector<Var> outputs = checkpoint(options, Composition(call), inputs, first.where);
  if constexpr (std::same_as<Result, Var>) {
    return outputs[0];
  } else {
    return outputs;
  }
}
template <class F, std::same_as<Var>... Rest>
  requires std::invocable<F&, const Var&, const Rest&...>
auto checkpoint(F&& f, const Located& first, const Rest&... rest) {
  return checkpoint(CheckpointOptions(), std::forward<F>(f), first, rest...);
}

}  // namespace palimpsest
