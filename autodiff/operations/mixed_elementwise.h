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

// autodiff/operations/functions/binary_functions.h

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var add(const A& a, const B& b, Where where = Where::current()) {
  const Constants on("add", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::add(on_a, on_b, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var subtract(const A& a, const B& b, Where where = Where::current()) {
  const Constants on("subtract", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::subtract(on_a, on_b, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var multiply(const A& a, const B& b, Where where = Where::current()) {
  const Constants on("multiply", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::multiply(on_a, on_b, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var divide(const A& a, const B& b, Where where = Where::current()) {
  const Constants on("divide", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::divide(on_a, on_b, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var minimum(const A& a, const B& b, Where where = Where::current()) {
  const Constants on("minimum", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::minimum(on_a, on_b, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var maximum(const A& a, const B& b, Where where = Where::current()) {
  const Constants on("maximum", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::maximum(on_a, on_b, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var share(const A& a, const B& b, Where where = Where::current()) {
  const Constants on("share", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::share(on_a, on_b, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var pow(const A& a, const B& b, Where where = Where::current()) {
  const Constants on("pow", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::pow(on_a, on_b, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var atan2(const A& a, const B& b, Where where = Where::current()) {
  const Constants on("atan2", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::atan2(on_a, on_b, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var hypot(const A& a, const B& b, Where where = Where::current()) {
  const Constants on("hypot", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::hypot(on_a, on_b, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var logaddexp(const A& a, const B& b, Where where = Where::current()) {
  const Constants on("logaddexp", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::logaddexp(on_a, on_b, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var fmod(const A& a, const B& b, Where where = Where::current()) {
  const Constants on("fmod", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::fmod(on_a, on_b, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var remainder(const A& a, const B& b, Where where = Where::current()) {
  const Constants on("remainder", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::remainder(on_a, on_b, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var copysign(const A& a, const B& b, Where where = Where::current()) {
  const Constants on("copysign", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::copysign(on_a, on_b, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var greater(const A& a, const B& b, Where where = Where::current()) {
  const Constants on("greater", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::greater(on_a, on_b, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var greater_equal(const A& a, const B& b, Where where = Where::current()) {
  const Constants on("greater_equal", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::greater_equal(on_a, on_b, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var less(const A& a, const B& b, Where where = Where::current()) {
  const Constants on("less", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::less(on_a, on_b, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var less_equal(const A& a, const B& b, Where where = Where::current()) {
  const Constants on("less_equal", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::less_equal(on_a, on_b, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var equal(const A& a, const B& b, Where where = Where::current()) {
  const Constants on("equal", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::equal(on_a, on_b, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var not_equal(const A& a, const B& b, Where where = Where::current()) {
  const Constants on("not_equal", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::not_equal(on_a, on_b, where);
}

// autodiff/operations/binary.h

template <IsValue A, IsValue B, IsValue C>
  requires AreMixed<A, B, C>
Var where(const A& condition, const B& a, const C& b, Where line = Where::current()) {
  const Constants on("where", line, condition, a, b);
  const Var on_condition = on(condition);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::where(on_condition, on_a, on_b, line);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var where(const A& condition, const B& a, double b, Where line = Where::current()) {
  const Constants on("where", line, condition, a);
  const Var on_condition = on(condition);
  const Var on_a = on(a);
  return palimpsest::where(on_condition, on_a, b, line);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var where(const A& condition, double a, const B& b, Where line = Where::current()) {
  const Constants on("where", line, condition, b);
  const Var on_condition = on(condition);
  const Var on_b = on(b);
  return palimpsest::where(on_condition, a, on_b, line);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var logical_and(const A& a, const B& b, Where where = Where::current()) {
  const Constants on("logical_and", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::logical_and(on_a, on_b, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var logical_or(const A& a, const B& b, Where where = Where::current()) {
  const Constants on("logical_or", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::logical_or(on_a, on_b, where);
}

// autodiff/operations/ctc.h

template <IsValue A, IsValue B, IsValue C, IsValue D>
  requires AreMixed<A, B, C, D>
Var ctc_loss(const A& log_probabilities, const B& targets, const C& input_lengths,
             const D& target_lengths, const CtcOptions& options = {},
             Where where = Where::current()) {
  const Constants on("ctc_loss", where, log_probabilities, targets, input_lengths, target_lengths);
  const Var on_log_probabilities = on(log_probabilities);
  const Var on_targets = on(targets);
  const Var on_input_lengths = on(input_lengths);
  const Var on_target_lengths = on(target_lengths);
  return palimpsest::ctc_loss(on_log_probabilities, on_targets, on_input_lengths, on_target_lengths,
                              options, where);
}

// autodiff/operations/distance.h

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var cosine_similarity(const A& a, const B& b, int axis = 1, double eps = 1e-8,
                      Where where = Where::current()) {
  const Constants on("cosine_similarity", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::cosine_similarity(on_a, on_b, axis, eps, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var pairwise_distance(const A& a, const B& b, const DistanceOptions& options = {},
                      Where where = Where::current()) {
  const Constants on("pairwise_distance", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::pairwise_distance(on_a, on_b, options, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var cdist(const A& a, const B& b, double p = 2, Where where = Where::current()) {
  const Constants on("cdist", where, a, b);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return palimpsest::cdist(on_a, on_b, p, where);
}

template <IsValue A, IsValue B, IsValue C>
  requires AreMixed<A, B, C>
Var cosine_embedding_loss(const A& a, const B& b, const C& targets, double margin = 0,
                          Reduction reduction = Reduction::mean, Where where = Where::current()) {
  const Constants on("cosine_embedding_loss", where, a, b, targets);
  const Var on_a = on(a);
  const Var on_b = on(b);
  const Var on_targets = on(targets);
  return palimpsest::cosine_embedding_loss(on_a, on_b, on_targets, margin, reduction, where);
}

template <IsValue A, IsValue B, IsValue C>
  requires AreMixed<A, B, C>
Var margin_ranking_loss(const A& a, const B& b, const C& targets, double margin = 0,
                        Reduction reduction = Reduction::mean, Where where = Where::current()) {
  const Constants on("margin_ranking_loss", where, a, b, targets);
  const Var on_a = on(a);
  const Var on_b = on(b);
  const Var on_targets = on(targets);
  return palimpsest::margin_ranking_loss(on_a, on_b, on_targets, margin, reduction, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var hinge_embedding_loss(const A& x, const B& targets, double margin = 1,
                         Reduction reduction = Reduction::mean, Where where = Where::current()) {
  const Constants on("hinge_embedding_loss", where, x, targets);
  const Var on_x = on(x);
  const Var on_targets = on(targets);
  return palimpsest::hinge_embedding_loss(on_x, on_targets, margin, reduction, where);
}

template <IsValue A, IsValue B, IsValue C>
  requires AreMixed<A, B, C>
Var triplet_margin_loss(const A& anchor, const B& positive, const C& negative,
                        const TripletOptions& options = {}, Where where = Where::current()) {
  const Constants on("triplet_margin_loss", where, anchor, positive, negative);
  const Var on_anchor = on(anchor);
  const Var on_positive = on(positive);
  const Var on_negative = on(negative);
  return palimpsest::triplet_margin_loss(on_anchor, on_positive, on_negative, options, where);
}

}  // namespace palimpsest
