#pragma once

#include <concepts>
#include <string_view>

#include "autodiff/export.h"
#include "autodiff/var.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Satisfied by `Var` and `Tensor`.
template <class V>
concept IsValue = std::same_as<V, Var> || std::same_as<V, Tensor>;
/// Satisfied by a `Var`, a `Tensor` and any further ones of them.
template <class... V>
concept AreMixed = (std::same_as<V, Var> || ...) && (std::same_as<V, Tensor> || ...);

/// Makes the tensors among the operands of an operation constants on the tape of the `Var`s.
class Constants {
 public:
  /// Throws `TapeError` naming `operation` when the first `Var` is empty or no longer on its tape.
  template <IsValue... V>
  Constants(std::string_view operation, const Where& where, const V&... operands)
      : operation_(operation), where_(where) {
    (look_at(operands), ...);
  }

  /// Throws `ArgumentError` for an undefined tensor.
  Var operator()(const Tensor& tensor) const;
  Var operator()(const Var& x) const { return x; }
  /// Likewise, or an empty handle for an undefined tensor.
  Var optional(const Tensor& tensor) const { return tensor.defined() ? (*this)(tensor) : Var(); }
  Var optional(const Var& x) const { return x; }

 private:
  void look_at(const Tensor&) {}
  void look_at(const Var& x);

  std::string_view operation_;
  Where where_;
  Tape* tape_ = nullptr;
};

}  // namespace palimpsest
