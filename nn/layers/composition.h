#pragma once

#include <tuple>
#include <utility>

#include "autodiff/export.h"
#include "autodiff/operations/binary.h"
#include "nn/parameters.h"

namespace palimpsest PALIMPSEST_EXPORT {
namespace nn {

/// `dropout` in training, and nothing otherwise.
class Dropout {
 public:
  /// `parameters` tell whether it is training. Throws `ArgumentError` unless 0 ≤ probability < 1.
  Dropout(Parameters parameters, double probability);
  Var operator()(const Var& x) const;

 private:
  Parameters mode_;
  double probability_;
};

/// x + f(x), for a layer f.
template <class F>
struct Residual {
  F f;

  Var operator()(const Var& x) const { return x + f(x); }
};
template <class F>
Residual(F) -> Residual<F>;

/// Layers one after the other. A layer is anything that maps a `Var` to a `Var`: a struct with a
/// call operator, a lambda, or a function, as in `Sequential(Linear(p / "a", 4, 8), [](const Var&
/// x) { return relu(x); }, Linear(p / "b", 8, 2))`.
template <class... Layers>
class Sequential {
 public:
  explicit Sequential(Layers... layers) : layers_(std::move(layers)...) {}

  Var operator()(const Var& x) const {
    Var y = x;
    std::apply([&](const auto&... layer) { ((y = layer(y)), ...); }, layers_);
    return y;
  }
  template <std::size_t i>
  const auto& get() const {
    return std::get<i>(layers_);
  }

 private:
  std::tuple<Layers...> layers_;
};

}  // namespace nn
}  // namespace palimpsest
