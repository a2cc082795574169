#pragma once

#include "autodiff/export.h"
#include "autodiff/operations/loss_reduction.h"
#include "autodiff/var.h"

/// Similarities and distances of vectors, and losses made of them. Operands are promoted to a
/// common dtype, and broadcast unless stated otherwise. Throw `ShapeError` for shapes that do not
/// fit and `DTypeError` for dtypes that are not floating.
namespace palimpsest PALIMPSEST_EXPORT {

/// a·b/(max(‖a‖, eps)·max(‖b‖, eps)) for the vectors along `axis`.
Var cosine_similarity(const Var& a, const Var& b, int axis = 1, double eps = 1e-8,
                      Where where = Where::current());

struct DistanceOptions {
  double p = 2;       ///< order of the norm, at least 1
  double eps = 1e-6;  ///< added to every difference, so that the norm is differentiable
  bool keep_axis = false;
};
/// The p-norm ‖a − b + eps‖ of the vectors along the last axis.
Var pairwise_distance(const Var& a, const Var& b, const DistanceOptions& options = {},
                      Where where = Where::current());

/// The distances ‖aᵢ − bⱼ‖ in the p-norm, p ≥ 1, between the rows of a (…, n, m) and those of b
/// (…, k, m): (…, n, k). Computed from the differences and not from a product of matrices. So small
/// distances are accurate, and the derivative is 0 where a distance is 0. Fused programs do not
/// store the differences.
Var cdist(const Var& a, const Var& b, double p = 2, Where where = Where::current());

// Losses. Targets are 1 or −1.

/// 1 − c for targets of 1, max(c − margin, 0) for targets of −1, where c is the cosine similarity
/// of the vectors along the last axis.
Var cosine_embedding_loss(const Var& a, const Var& b, const Var& targets, double margin = 0,
                          Reduction reduction = Reduction::mean, Where where = Where::current());

/// max(margin − t·(a − b), 0): a should be larger than b for targets t of 1, and smaller for −1.
Var margin_ranking_loss(const Var& a, const Var& b, const Var& targets, double margin = 0,
                        Reduction reduction = Reduction::mean, Where where = Where::current());

/// x for targets of 1, max(margin − x, 0) for targets of −1.
Var hinge_embedding_loss(const Var& x, const Var& targets, double margin = 1,
                         Reduction reduction = Reduction::mean, Where where = Where::current());

struct TripletOptions {
  double margin = 1;
  double p = 2;
  double eps = 1e-6;
  /// Uses the distance from the positive to the negative vector if it is smaller than that from the
  /// anchor (Balntas et al., 2016).
  bool swap = false;
  Reduction reduction = Reduction::mean;
};
/// max(‖anchor − positive‖ − ‖anchor − negative‖ + margin, 0), with the norms of
/// `pairwise_distance`.
Var triplet_margin_loss(const Var& anchor, const Var& positive, const Var& negative,
                        const TripletOptions& options = {}, Where where = Where::current());

}  // namespace palimpsest
