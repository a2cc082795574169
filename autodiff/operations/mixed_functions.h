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

// autodiff/operations/construction.h

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var kron(const A& a, const B& b, Where where = Where::current()) {
  const Constants on("kron", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::kron(on_a, on_b, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var cross(const A& a, const B& b, int axis = -1, Where where = Where::current()) {
  const Constants on("cross", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::cross(on_a, on_b, axis, where);
}

inline Var block_diag(std::initializer_list<VarOrTensor> blocks, Where where = Where::current()) {
  const Constants on("block_diag", where, blocks);
  const std::vector<Var> on_blocks = on(blocks);
  return palimpsest::block_diag(on_blocks, where);
}

inline std::vector<Var> meshgrid(std::initializer_list<VarOrTensor> vectors,
                                 GridIndexing indexing = GridIndexing::ij,
                                 Where where = Where::current()) {
  const Constants on("meshgrid", where, vectors);
  const std::vector<Var> on_vectors = on(vectors);
  return palimpsest::meshgrid(on_vectors, indexing, where);
}

// autodiff/operations/elementwise.h

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var isclose(const A& a, const B& b, const CloseOptions& options = {},
            Where where = Where::current()) {
  const Constants on("isclose", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::isclose(on_a, on_b, options, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var logical_xor(const A& a, const B& b, Where where = Where::current()) {
  const Constants on("logical_xor", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::logical_xor(on_a, on_b, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var fmax(const A& a, const B& b, Where where = Where::current()) {
  const Constants on("fmax", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::fmax(on_a, on_b, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var fmin(const A& a, const B& b, Where where = Where::current()) {
  const Constants on("fmin", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::fmin(on_a, on_b, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var heaviside(const A& x, const B& value, Where where = Where::current()) {
  const Constants on("heaviside", where, x, value);
  const Var on_x = on(x);
  const Var on_value = on(value);
  return palimpsest::heaviside(on_x, on_value, where);
}

template <IsValue A, IsValue B, IsValue C>
  requires AreMixed<A, B, C>
Var clamp(const A& x, const B& low, const C& high, Where where = Where::current()) {
  const Constants on("clamp", where, x, low, high);
  const Var on_x = on(x);
  const Var on_low = on(low);
  const Var on_high = on(high);
  return palimpsest::clamp(on_x, on_low, on_high, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var ldexp(const A& x, const B& exponent, Where where = Where::current()) {
  const Constants on("ldexp", where, x, exponent);
  const Var on_x = on(x);
  const Var on_exponent = on(exponent);
  return palimpsest::ldexp(on_x, on_exponent, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var floor_divide(const A& a, const B& b, Where where = Where::current()) {
  const Constants on("floor_divide", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::floor_divide(on_a, on_b, where);
}

template <IsValue A, IsValue B, IsValue C>
  requires AreMixed<A, B, C>
Var addcmul(const A& x, const B& a, const C& b, double value = 1, Where where = Where::current()) {
  const Constants on("addcmul", where, x, a, b);
  const Var on_x = on(x);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::addcmul(on_x, on_a, on_b, value, where);
}

template <IsValue A, IsValue B, IsValue C>
  requires AreMixed<A, B, C>
Var addcdiv(const A& x, const B& a, const C& b, double value = 1, Where where = Where::current()) {
  const Constants on("addcdiv", where, x, a, b);
  const Var on_x = on(x);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::addcdiv(on_x, on_a, on_b, value, where);
}

template <IsValue A, IsValue B, IsValue C>
  requires AreMixed<A, B, C>
Var lerp(const A& a, const B& b, const C& weight, Where where = Where::current()) {
  const Constants on("lerp", where, a, b, weight);
  const Var on_a = on(a);
  const Var on_b = on(b);
  const Var on_weight = on(weight);
  return palimpsest::lerp(on_a, on_b, on_weight, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var lerp(const A& a, const B& b, double weight, Where where = Where::current()) {
  const Constants on("lerp", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::lerp(on_a, on_b, weight, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var logaddexp2(const A& a, const B& b, Where where = Where::current()) {
  const Constants on("logaddexp2", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::logaddexp2(on_a, on_b, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var igamma(const A& a, const B& x, Where where = Where::current()) {
  const Constants on("igamma", where, a, x);
  const Var on_a = on(a);
  const Var on_x = on(x);
  return palimpsest::igamma(on_a, on_x, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var igammac(const A& a, const B& x, Where where = Where::current()) {
  const Constants on("igammac", where, a, x);
  const Var on_a = on(a);
  const Var on_x = on(x);
  return palimpsest::igammac(on_a, on_x, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var zeta(const A& x, const B& q, Where where = Where::current()) {
  const Constants on("zeta", where, x, q);
  const Var on_x = on(x);
  const Var on_q = on(q);
  return palimpsest::zeta(on_x, on_q, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var prelu(const A& x, const B& weight, Where where = Where::current()) {
  const Constants on("prelu", where, x, weight);
  const Var on_x = on(x);
  const Var on_weight = on(weight);
  return palimpsest::prelu(on_x, on_weight, where);
}

// autodiff/operations/index.h

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var gather(const A& x, int axis, const B& index, Where where = Where::current()) {
  const Constants on("gather", where, x, index);
  const Var on_x = on(x);
  const Var on_index = on(index);
  return palimpsest::gather(on_x, axis, on_index, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var scatter_add(const A& x, int axis, const B& index, std::int64_t size,
                Where where = Where::current()) {
  const Constants on("scatter_add", where, x, index);
  const Var on_x = on(x);
  const Var on_index = on(index);
  return palimpsest::scatter_add(on_x, axis, on_index, size, where);
}

template <IsValue A, IsValue B, IsValue C>
  requires AreMixed<A, B, C>
Var scatter_add(const A& x, int axis, const B& index, const C& source,
                Where where = Where::current()) {
  const Constants on("scatter_add", where, x, index, source);
  const Var on_x = on(x);
  const Var on_index = on(index);
  const Var on_source = on(source);
  return palimpsest::scatter_add(on_x, axis, on_index, on_source, where);
}

template <IsValue A, IsValue B, IsValue C>
  requires AreMixed<A, B, C>
Var scatter(const A& x, int axis, const B& index, const C& source, Where where = Where::current()) {
  const Constants on("scatter", where, x, index, source);
  const Var on_x = on(x);
  const Var on_index = on(index);
  const Var on_source = on(source);
  return palimpsest::scatter(on_x, axis, on_index, on_source, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var scatter(const A& x, int axis, const B& index, double value, Where where = Where::current()) {
  const Constants on("scatter", where, x, index);
  const Var on_x = on(x);
  const Var on_index = on(index);
  return palimpsest::scatter(on_x, axis, on_index, value, where);
}

template <IsValue A, IsValue B, IsValue C>
  requires AreMixed<A, B, C>
Var scatter_reduce(const A& x, int axis, const B& index, const C& source,
                   ScatterReduction reduction, bool include_self = true,
                   Where where = Where::current()) {
  const Constants on("scatter_reduce", where, x, index, source);
  const Var on_x = on(x);
  const Var on_index = on(index);
  const Var on_source = on(source);
  return palimpsest::scatter_reduce(on_x, axis, on_index, on_source, reduction, include_self,
                                    where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var index_select(const A& x, int axis, const B& index, Where where = Where::current()) {
  const Constants on("index_select", where, x, index);
  const Var on_x = on(x);
  const Var on_index = on(index);
  return palimpsest::index_select(on_x, axis, on_index, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var index_add(const A& x, int axis, const B& index, std::int64_t size,
              Where where = Where::current()) {
  const Constants on("index_add", where, x, index);
  const Var on_x = on(x);
  const Var on_index = on(index);
  return palimpsest::index_add(on_x, axis, on_index, size, where);
}

template <IsValue A, IsValue B, IsValue C>
  requires AreMixed<A, B, C>
Var index_add(const A& x, int axis, const B& index, const C& source,
              Where where = Where::current()) {
  const Constants on("index_add", where, x, index, source);
  const Var on_x = on(x);
  const Var on_index = on(index);
  const Var on_source = on(source);
  return palimpsest::index_add(on_x, axis, on_index, on_source, where);
}

template <IsValue A, IsValue B, IsValue C>
  requires AreMixed<A, B, C>
Var index_copy(const A& x, int axis, const B& index, const C& source,
               Where where = Where::current()) {
  const Constants on("index_copy", where, x, index, source);
  const Var on_x = on(x);
  const Var on_index = on(index);
  const Var on_source = on(source);
  return palimpsest::index_copy(on_x, axis, on_index, on_source, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var masked_select(const A& x, const B& mask, std::optional<std::int64_t> count = {},
                  Where where = Where::current()) {
  const Constants on("masked_select", where, x, mask);
  const Var on_x = on(x);
  const Var on_mask = on(mask);
  return palimpsest::masked_select(on_x, on_mask, count, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var embedding(const A& table, const B& ids, Where where = Where::current()) {
  const Constants on("embedding", where, table, ids);
  const Var on_table = on(table);
  const Var on_ids = on(ids);
  return palimpsest::embedding(on_table, on_ids, where);
}

inline Var index(const VarOrTensor& x, std::initializer_list<VarOrTensor> indices,
                 Where where = Where::current()) {
  const Constants on("index", where, x, indices);
  const Var on_x = on(x);
  const std::vector<Var> on_indices = on(indices);
  return palimpsest::index(on_x, on_indices, where);
}

inline Var index_put(const VarOrTensor& x, std::initializer_list<VarOrTensor> indices,
                     const VarOrTensor& values, bool accumulate = false,
                     Where where = Where::current()) {
  const Constants on("index_put", where, x, indices, values);
  const Var on_x = on(x);
  const std::vector<Var> on_indices = on(indices);
  const Var on_values = on(values);
  return palimpsest::index_put(on_x, on_indices, on_values, accumulate, where);
}

// autodiff/operations/reduce.h

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var linear_recurrence(const A& a, const B& b, int axis, bool reverse = false,
                      Where where = Where::current()) {
  const Constants on("linear_recurrence", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::linear_recurrence(on_a, on_b, axis, reverse, where);
}

// autodiff/operations/shape.h

inline Var concat(std::initializer_list<VarOrTensor> parts, int axis,
                  Where where = Where::current()) {
  const Constants on("concat", where, parts);
  const std::vector<Var> on_parts = on(parts);
  return palimpsest::concat(on_parts, axis, where);
}

inline Var stack(std::initializer_list<VarOrTensor> parts, int axis,
                 Where where = Where::current()) {
  const Constants on("stack", where, parts);
  const std::vector<Var> on_parts = on(parts);
  return palimpsest::stack(on_parts, axis, where);
}

// autodiff/operations/sorting.h

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var searchsorted(const A& sorted, const B& values, bool right = false,
                 Where where = Where::current()) {
  const Constants on("searchsorted", where, sorted, values);
  const Var on_sorted = on(sorted);
  const Var on_values = on(values);
  return palimpsest::searchsorted(on_sorted, on_values, right, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var bucketize(const A& values, const B& boundaries, bool right = false,
              Where where = Where::current()) {
  const Constants on("bucketize", where, values, boundaries);
  const Var on_values = on(values);
  const Var on_boundaries = on(boundaries);
  return palimpsest::bucketize(on_values, on_boundaries, right, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Histogram histogram(const A& x, const B& edges, const HistogramOptions& options = {},
                    Where where = Where::current()) {
  const Constants on("histogram", where, x, edges);
  const Var on_x = on(x);
  const Var on_edges = on(edges);
  return palimpsest::histogram(on_x, on_edges, options, where);
}

}  // namespace palimpsest
