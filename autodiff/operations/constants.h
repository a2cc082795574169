#pragma once

#include <concepts>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "autodiff/export.h"
#include "autodiff/var.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Satisfied by `Var` and `Tensor`.
template <class V>
concept IsValue = std::same_as<V, Var> || std::same_as<V, Tensor>;
/// Satisfied by a `Var`, a `Tensor` and any further ones of them.
template <class... V>
concept AreMixed = (std::same_as<V, Var> || ...) && (std::same_as<V, Tensor> || ...);

/// A `Var` or a tensor, in lists that mix them.
class VarOrTensor {
 public:
  VarOrTensor(const Var& x) : x_(x) {}  // NOLINT(google-explicit-constructor)
  // NOLINTNEXTLINE(google-explicit-constructor)
  VarOrTensor(const Tensor& tensor) : tensor_(tensor), is_tensor_(true) {}

  /// Which of the two it is; the other one is empty.
  bool is_tensor() const { return is_tensor_; }
  const Var& x() const { return x_; }
  const Tensor& tensor() const { return tensor_; }

 private:
  Var x_;
  Tensor tensor_;
  bool is_tensor_ = false;
};

/// Makes the tensors among the operands of an operation constants on the tape of the `Var`s.
class Constants {
 public:
  /// Throws `TapeError` naming `operation` when the first `Var` is empty or no longer on its tape.
  template <class... V>
  Constants(std::string_view operation, const Where& where, const V&... operands)
      : operation_(operation), where_(where) {
    (look_at(operands), ...);
  }

  /// Throws `ArgumentError` for an undefined tensor, and if there is no `Var`.
  Var operator()(const Tensor& tensor) const;
  Var operator()(const Var& x) const { return x; }
  Var operator()(const VarOrTensor& x) const;
  std::vector<Var> operator()(std::initializer_list<VarOrTensor> list) const;
  /// Likewise, or an empty handle for an undefined tensor.
  Var optional(const Tensor& tensor) const { return tensor.defined() ? (*this)(tensor) : Var(); }
  Var optional(const Var& x) const { return x; }

 private:
  void look_at(const Tensor&) {}
  void look_at(const Var& x);
  void look_at(const VarOrTensor& x);
  void look_at(std::initializer_list<VarOrTensor> list);

  std::string_view operation_;
  Where where_;
  Tape* tape_ = nullptr;
};

}  // namespace palimpsest
