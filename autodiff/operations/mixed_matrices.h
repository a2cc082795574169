// Written by tools/tensor_functions.py, as `./dev docs` does. Do not edit.
#pragma once

#include <initializer_list>
#include <vector>

#include "autodiff/export.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/constants.h"
#include "autodiff/operations/construction.h"
#include "autodiff/operations/convolution.h"
#include "autodiff/operations/ctc.h"
#include "autodiff/operations/distance.h"
#include "autodiff/operations/elementwise.h"
#include "autodiff/operations/functions/activation.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/functions/binary_functions.h"
#include "autodiff/operations/functions/exponential.h"
#include "autodiff/operations/functions/special.h"
#include "autodiff/operations/functions/trigonometric.h"
#include "autodiff/operations/image.h"
#include "autodiff/operations/index.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/linalg.h"
#include "autodiff/operations/loss.h"
#include "autodiff/operations/loss_reduction.h"
#include "autodiff/operations/normalization.h"
#include "autodiff/operations/products.h"
#include "autodiff/operations/random.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/sequence.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/sorting.h"
#include "autodiff/operations/sparse.h"
#include "autodiff/operations/unary.h"

/// Functions of `Var`s and tensors together. Each use of a tensor makes it a constant on the tape.
namespace palimpsest PALIMPSEST_EXPORT {

// autodiff/operations/linalg.h

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var triangular_solve(const A& a, const B& b, const TriangularSolveOptions& options = {},
                     Where where = Where::current()) {
  const Constants on("triangular_solve", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::triangular_solve(on_a, on_b, options, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var solve(const A& a, const B& b, const SolveOptions& options = {},
          Where where = Where::current()) {
  const Constants on("solve", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::solve(on_a, on_b, options, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var lstsq(const A& a, const B& b, Where where = Where::current()) {
  const Constants on("lstsq", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::lstsq(on_a, on_b, where);
}

// autodiff/operations/products.h

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var dot(const A& a, const B& b, Where where = Where::current()) {
  const Constants on("dot", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::dot(on_a, on_b, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var outer(const A& a, const B& b, Where where = Where::current()) {
  const Constants on("outer", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::outer(on_a, on_b, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var vecdot(const A& a, const B& b, int axis = -1, Where where = Where::current()) {
  const Constants on("vecdot", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::vecdot(on_a, on_b, axis, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var tensordot(const A& a, const B& b, int count = 2, Where where = Where::current()) {
  const Constants on("tensordot", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::tensordot(on_a, on_b, count, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var tensordot(const A& a, const B& b, const Axes& axes_a, const Axes& axes_b,
              Where where = Where::current()) {
  const Constants on("tensordot", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::tensordot(on_a, on_b, axes_a, axes_b, where);
}

template <IsValue A, IsValue B, IsValue C = A>
  requires AreMixed<A, B, C>
Var linear(const A& x, const B& weight, const C& bias = {}, Where where = Where::current()) {
  const Constants on("linear", where, x, weight, bias);
  const Var on_x = on(x);
  const Var on_weight = on(weight);
  const Var on_bias = on.optional(bias);
  return palimpsest::linear(on_x, on_weight, on_bias, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var matmul(const A& a, const B& b, const MatmulOptions& options = {},
           Where where = Where::current()) {
  const Constants on("matmul", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::matmul(on_a, on_b, options, where);
}

inline Var multi_dot(std::initializer_list<VarOrTensor> factors, Where where = Where::current()) {
  const Constants on("multi_dot", where, factors);
  const std::vector<Var> on_factors = on(factors);
  return palimpsest::multi_dot(on_factors, where);
}

inline Var einsum(std::string_view equation, std::initializer_list<VarOrTensor> operands,
                  Where where = Where::current()) {
  const Constants on("einsum", where, operands);
  const std::vector<Var> on_operands = on(operands);
  return palimpsest::einsum(equation, on_operands, where);
}

// autodiff/operations/sparse.h

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var sparse_matmul(const SparsePattern& pattern, const A& values, const B& x,
                  const SparseMatmulOptions& options = {}, Where where = Where::current()) {
  const Constants on("sparse_matmul", where, values, x);
  const Var on_values = on(values);
  const Var on_x = on(x);
  return palimpsest::sparse_matmul(pattern, on_values, on_x, options, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var sampled_matmul(const SparsePattern& pattern, const A& a, const B& b,
                   Where where = Where::current()) {
  const Constants on("sampled_matmul", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::sampled_matmul(pattern, on_a, on_b, where);
}

}  // namespace palimpsest
