#pragma once

#include <span>
#include <vector>

#include "autodiff/export.h"
#include "autodiff/var.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// The node that an operation's VJP differentiates, its adjoints, and where to put the results.
class Pullback {
 public:
  /// The adjoint of an input: `value`, or the product `left`ᵀ·`value` if `left` is defined.
  struct InputAdjoint {
    Var value;
    Var left = {};
    bool is_none = false;
  };
  Pullback(Tape& tape, NodeId node, std::span<const Var> output_adjoints,
           std::span<InputAdjoint> input_adjoints, std::span<const bool> wanted);

  Tape& tape() const { return *tape_; }
  std::size_t input_count() const { return wanted_.size(); }
  std::size_t output_count() const { return output_adjoints_.size(); }
  /// Input or output `i` of the forward node. These and the functions below throw `ArgumentError`
  /// where there is no such input or output.
  Var input(std::size_t i = 0) const;
  Var output(std::size_t i = 0) const;
  const Attributes& attributes() const { return tape_->attributes(node_); }
  /// True when output `i` has an adjoint. If not, `adjoint(i)` returns zeros.
  bool has_adjoint(std::size_t i = 0) const { return output_adjoints_[output_at(i)].defined(); }
  /// The derivative of the loss by output `i`, of the output's type.
  Var adjoint(std::size_t i = 0) const;
  /// True when the adjoint of input `i` is needed. Do not record it otherwise.
  bool wants(std::size_t i = 0) const { return wanted_[input_at(i)]; }
  /// Sets the adjoint of input `i`, which must have the input's type. `vjp` checks that.
  void set(std::size_t i, const Var& adjoint) const { input_adjoints_[input_at(i)] = {adjoint}; }
  /// Declares that no derivative flows through input `i`. Equals setting zeros, but records
  /// nothing.
  void set_none(std::size_t i) const {
    input_adjoints_[input_at(i)] = {.value = {}, .is_none = true};
  }
  /// Sets the adjoint as the product aᵀ·b of matrices a (k, m) and b (k, n). It is recorded later,
  /// possibly merged with other products that are added to it.
  void set_product(std::size_t i, const Var& a, const Var& b) const {
    input_adjoints_[input_at(i)] = {b, a};
  }
  bool is_set(std::size_t i = 0) const {
    const InputAdjoint& set = input_adjoints_[input_at(i)];
    return set.value.defined() || set.is_none;
  }
  /// The line that recorded the forward node, for the nodes recorded now. A copy, because the tape
  /// reallocates as it grows.
  Where where() const { return tape_->where(node_); }

 private:
  std::size_t input_at(std::size_t i) const {
    if (i >= wanted_.size()) throw_index("inputs", i, wanted_.size());
    return i;
  }
  std::size_t output_at(std::size_t i) const {
    if (i >= output_adjoints_.size()) throw_index("outputs", i, output_adjoints_.size());
    return i;
  }
  [[noreturn]] void throw_index(const char* what, std::size_t i, std::size_t count) const;

  Tape* tape_;
  NodeId node_;
  std::span<const Var> output_adjoints_;
  std::span<InputAdjoint> input_adjoints_;
  std::span<const bool> wanted_;
};

/// Reverse-mode differentiation as a function from tape to tape. Records the nodes that compute
/// Σᵢ seedᵢᵀ ∂yᵢ/∂x for every x and returns them, each of its x's type. Gradients can be
/// differentiated again.
///
/// `seeds` holds one `Var` of each y's type, or is empty for ones. Ones give the gradient of the
/// sum over the elements of all ys. An x that no y depends on gets zeros. Where several paths meet,
/// contributions are added in the order of node ids, from high to low. Iterative; the cost is
/// linear in the number of nodes between xs and ys.
///
/// Throws `ArgumentError` without ys and for another number of seeds, `TapeError` for handles of
/// different tapes. Throws `ShapeError` for a seed of another type, `DTypeError` when a y or x is
/// not floating.
std::vector<Var> vjp(std::span<const Var> ys, std::span<const Var> xs, std::span<const Var> seeds,
                     Where where = Where::current());

/// The gradient of the sum of y's elements with respect to every x, of its type. Throws as `vjp`
/// does.
std::vector<Var> gradient(const Var& y, std::span<const Var> xs, Where where = Where::current());
std::vector<Var> gradient(const Var& y, std::initializer_list<Var> xs,
                          Where where = Where::current());
Var gradient(const Var& y, const Var& x, Where where = Where::current());

/// The directional derivatives Σᵢ (∂y/∂xᵢ)·vᵢ, one for every y and of its type. `tangents` holds
/// one v of each x's type. Uses two reverse passes (Townsend, 2017): gradients are linear in their
/// seeds, and the derivative with respect to the seeds is the result. Throws as `vjp` does, and
/// `ArgumentError` for another number of tangents.
std::vector<Var> jvp(std::span<const Var> ys, std::span<const Var> xs,
                     std::span<const Var> tangents, Where where = Where::current());
Var jvp(const Var& y, const Var& x, const Var& tangent, Where where = Where::current());

/// Hessian-vector products of the sum of y's elements: Σⱼ (∂²y/∂xᵢ∂xⱼ)·vⱼ for every xᵢ, where v are
/// the `directions`, one of each x's type. Throws as `vjp` does.
std::vector<Var> hvp(const Var& y, std::span<const Var> xs, std::span<const Var> directions,
                     Where where = Where::current());
Var hvp(const Var& y, const Var& x, const Var& direction, Where where = Where::current());

/// ∂y/∂x, with the shape of y followed by that of x, and x's dtype. Computes one gradient per
/// element of y or, if x has fewer elements, one `jvp` per element of x. So it suits cases where
/// one of them is small. Leaves no nodes on the tape. Throws as `vjp` does, and `ShapeError` when
/// the two ranks together exceed `max_rank`.
Tensor jacobian(const Var& y, const Var& x, Where where = Where::current());

/// The second derivatives of a scalar y, with the shape of x twice, and x's dtype. Costs as much as
/// `jacobian` of the gradient. Leaves no nodes on the tape. Throws as `jacobian` does, and
/// `ShapeError` unless y has exactly one element.
Tensor hessian(const Var& y, const Var& x, Where where = Where::current());

}  // namespace palimpsest
