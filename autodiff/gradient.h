#pragma once

#include <span>
#include <vector>

#include "autodiff/var.h"

namespace palimpsest {

/// One operation's view of its node while adjoints are recorded.
class Pullback {
 public:
  /// The adjoint of an input, or where `left` is there, `left`ᵀ·`value` is.
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
  Var input(std::size_t i = 0) const;
  Var output(std::size_t i = 0) const;
  const Attributes& attributes() const { return tape_->attributes(node_); }
  /// True when output `i` has an adjoint; `adjoint(i)` gives zeros otherwise.
  bool has_adjoint(std::size_t i = 0) const { return output_adjoints_[i].defined(); }
  Var adjoint(std::size_t i = 0) const;
  /// True when somebody asked for the adjoint of input `i`; do not record it otherwise.
  bool wants(std::size_t i = 0) const { return wanted_[i]; }
  /// Gives the adjoint of input `i`: its shape and dtype must be the input's.
  void set(std::size_t i, const Var& adjoint) const { input_adjoints_[i] = {adjoint}; }
  /// Says that no derivative flows through input `i`, as zeros would, without recording them.
  void set_none(std::size_t i) const { input_adjoints_[i] = {.value = {}, .is_none = true}; }
  /// Gives it as the product aᵀ·b of matrices a (k, m) and b (k, n), which is recorded later, as
  /// one with others that are added to it.
  void set_product(std::size_t i, const Var& a, const Var& b) const { input_adjoints_[i] = {b, a}; }
  bool is_set(std::size_t i = 0) const {
    return input_adjoints_[i].value.defined() || input_adjoints_[i].is_none;
  }
  /// The line that recorded the forward node, for the nodes recorded now; a copy, because the tape
  /// moves what it holds as it grows.
  Where where() const { return tape_->where(node_); }

 private:
  Tape* tape_;
  NodeId node_;
  std::span<const Var> output_adjoints_;
  std::span<InputAdjoint> input_adjoints_;
  std::span<const bool> wanted_;
};

/// Reverse-mode differentiation as a function from tape to tape: records the nodes that compute
/// Σᵢ seedᵢᵀ ∂yᵢ/∂x for every x and returns them, so gradients can be differentiated again.
///
/// `seeds` holds one Var per y of its shape, or is empty for ones (then every y must be a scalar or
/// the sum over its elements is meant). An x that no y depends on gets zeros. Where several paths
/// meet, contributions are added in the order of the node ids, from high to low. Throws `TapeError`
/// for handles of different tapes, `ShapeError` for a seed of another shape, `DTypeError` when a y
/// or x is not floating. Iterative; cost is linear in the nodes between xs and ys.
std::vector<Var> vjp(std::span<const Var> ys, std::span<const Var> xs, std::span<const Var> seeds,
                     Where where = Where::current());

/// The gradient of the sum of y's elements with respect to every x.
std::vector<Var> gradient(const Var& y, std::span<const Var> xs, Where where = Where::current());
std::vector<Var> gradient(const Var& y, std::initializer_list<Var> xs,
                          Where where = Where::current());
Var gradient(const Var& y, const Var& x, Where where = Where::current());

}  // namespace palimpsest
