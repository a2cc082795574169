#pragma once

#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "autodiff/export.h"
#include "autodiff/located.h"
#include "autodiff/operations/binary.h"
#include "autodiff/require_function.h"
#include "nn/parameters.h"

namespace palimpsest PALIMPSEST_EXPORT {
namespace nn {

/// `dropout` in training, and nothing otherwise.
class Dropout {
 public:
  /// `parameters` tell whether it is training. Throws `ArgumentError` unless 0 ≤ probability < 1.
  Dropout(Parameters parameters, double probability);

  Var operator()(const Located& x) const;

 private:
  Parameters mode_;
  double probability_;
};

/// Calls a layer so that what it records has the line of the caller, if the layer takes one.
template <class Layer>
Var call_layer(const Layer& layer, const Located& x) {
  detail::require_function(layer, "layer", "a layer", "maps a Var to a Var", x.where);
  if constexpr (std::is_invocable_v<const Layer&, const Located&>) {
    return layer(x);
  } else {
    return layer(x.var);
  }
}

/// x + f(x), for a layer f.
template <class F>
struct Residual {
  F f;

  Var operator()(const Located& x) const { return add(x.var, call_layer(f, x), x.where); }
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

  Var operator()(const Located& x) const {
    Var y = x.var;
    const auto call = [&](const auto& layer) { y = call_layer(layer, Located(y, x.where)); };
    std::apply([&](const auto&... layer) { (call(layer), ...); }, layers_);
    return y;
  }
  template <std::size_t i>
  const auto& get() const {
    return std::get<i>(layers_);
  }

 private:
  std::tuple<Layers...> layers_;
};

/// Several layers of one kind, one after the other, as in `Stack<Block> blocks(p / "blocks", 12,
/// width, heads)`. Layer i is `Layer{p / "blocks" / "i", width, heads}`, and is called in that
/// scope.
template <class Layer>
class Stack {
 public:
  template <class... Arguments>
  Stack(const Parameters& parameters, int count, const Arguments&... arguments) {
    for (int i = 0; i < count; ++i) {
      scopes_.push_back(parameters / std::to_string(i));
      layers_.push_back(Layer{scopes_.back(), arguments...});
    }
  }

  Var operator()(const Located& x) const {
    Var y = x.var;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const auto scope = scopes_[i].scope(y.tape());
      y = call_layer(layers_[i], Located(y, x.where));
    }
    return y;
  }
  /// The layers, in order.
  const std::vector<Layer>& layers() const { return layers_; }

 private:
  std::vector<Parameters> scopes_;  // by layer
  std::vector<Layer> layers_;
};

}  // namespace nn
}  // namespace palimpsest
