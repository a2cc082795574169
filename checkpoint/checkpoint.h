#pragma once

#include <concepts>
#include <span>
#include <utility>
#include <vector>

#include "autodiff/composition.h"
#include "autodiff/export.h"
#include "autodiff/located.h"
#include "autodiff/require_function.h"
#include "checkpoint/stores/codec.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// How a checkpoint keeps the inputs that it recomputes from.
struct CheckpointOptions {
  /// Precision at which floating-point inputs are kept. Leaves, which are kept anyway, and values
  /// that `f` captures stay exact. With a codec that rounds, the outputs stay exact, and the
  /// gradients are those of `f` at rounded inputs. Inputs lose the digits that `Codec` says. A run
  /// throws `ArgumentError` for a finite number beyond the range of the narrow dtype. The narrow
  /// copies are made when `f` runs. They save memory in planned gradients only: an eager tape holds
  /// them in addition to what it keeps anyway, and a run without gradients does not use them.
  Codec codec = Codec::exact;
};

/// Records f(inputs) as one operation that keeps nothing between its inputs and its outputs.
/// Intermediate values are freed while it runs. They are recorded and computed again where a
/// derivative needs them.
///
/// `f` is called once, here; what it captures by reference need not live longer. Values of the tape
/// that it captures become additional inputs and get their gradients. Random operations draw the
/// same numbers again. Checkpoints nest and have derivatives of any order. The forward run takes
/// its workspace (the most bytes live at once in between) and its outputs, no more. After the call,
/// do not use `Var`s that `f` recorded, other than those returned here. Throws `ArgumentError` when
/// `f` returns nothing or records a parameter.
std::vector<Var> checkpoint(const Composition& f, std::span<const Var> inputs,
                            Where where = Where::current());
std::vector<Var> checkpoint(const CheckpointOptions& options, const Composition& f,
                            std::span<const Var> inputs, Where where = Where::current());

/// Overload for an `f` of one or more Vars. It returns what `f` returns: a Var or a
/// `std::vector<Var>`.
template <class F, std::same_as<Var>... Rest>
  requires std::invocable<F&, const Var&, const Rest&...>
auto checkpoint(const CheckpointOptions& options, F&& f, const Located& first,
                const Rest&... rest) {
  using Result = std::invoke_result_t<F&, const Var&, const Rest&...>;
  detail::require_function(f, "checkpoint", "the argument", "records values", first.where);
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
