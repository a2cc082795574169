#include "autodiff/operations/distance.h"

#include <limits>
#include <string>

#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"

namespace palimpsest {
namespace {

void require_vectors(const Var& a, const Var& b, int least_rank, const char* operation,
                     const Where& where) {
  const Var both[] = {a, b};
  common_tape(both, operation, where);
  for (const Var& x : both) {
    require_floating(x, operation, where);
    if (x.rank() >= least_rank) continue;
    throw ShapeError(operation,
                     "takes operands of at least " + std::to_string(least_rank) +
                         " axes, not shape " + to_string(x.shape()) + "; add an axis",
                     where);
  }
}

/// max(x, 0) with derivative 1 at 0, so that losses at the margin still have a derivative.
Var hinge(const Var& x, const Where& where) {
  return clamp(x, 0, std::numeric_limits<double>::infinity(), where);
}

/// `a` for targets above 0, else b.
Var by_target(const Var& targets, const Var& a, const Var& b, const Where& where) {
  return palimpsest::where(greater(targets, 0, where), a, b, where);
}

}  // namespace

Var cosine_similarity(const Var& a, const Var& b, int axis, double eps, Where where) {
  require_vectors(a, b, 1, "cosine_similarity", where);
  const Shape common = broadcast(a.shape(), b.shape(), "cosine_similarity", where);
  const int wrapped = common.wrap(axis, "cosine_similarity", where);
  const Var left = broadcast_to(a, common, where);
  const Var right = broadcast_to(b, common, where);
  const auto length = [&](const Var& x) {
    return clamp(norm(x, 2, {wrapped}, false, where), eps, std::numeric_limits<double>::infinity(),
                 where);
  };
  const Var product = sum(multiply(left, right, where), {wrapped}, false, where);
  const Var lengths = multiply(length(left), length(right), where);
  return divide(product, lengths, where);
}

Var pairwise_distance(const Var& a, const Var& b, const DistanceOptions& options, Where where) {
  require_vectors(a, b, 1, "pairwise_distance", where);
  broadcast(a.shape(), b.shape(), "pairwise_distance", where);
  const Var difference = subtract(a, b, where);
  const Var moved = options.eps == 0 ? difference : Located(difference, where) + options.eps;
  return norm(moved, options.p, {-1}, options.keep_axis, where);
}

Var cdist(const Var& a, const Var& b, double p, Where where) {
  require_vectors(a, b, 2, "cdist", where);
  if (a.shape().size(-1) != b.shape().size(-1)) {
    throw ShapeError("cdist",
                     "the vectors have " + std::to_string(a.shape().size(-1)) + " and " +
                         std::to_string(b.shape().size(-1)) +
                         " elements; give equal sizes of the last axis",
                     where);
  }
  const Var difference = subtract(unsqueeze(a, -2, where), unsqueeze(b, -3, where), where);
  return norm(difference, p, {-1}, false, where);
}

Var cosine_embedding_loss(const Var& a, const Var& b, const Var& targets, double margin,
                          Reduction reduction, Where where) {
  require_value(targets, "cosine_embedding_loss", where);
  const Var similarity = cosine_similarity(a, b, -1, 1e-8, where);
  const Var apart = hinge(Located(similarity, where) - margin, where);
  const Var alike = 1 - Located(similarity, where);
  return reduce_loss(by_target(targets, alike, apart, where), reduction, where);
}

Var margin_ranking_loss(const Var& a, const Var& b, const Var& targets, double margin,
                        Reduction reduction, Where where) {
  for (const Var& x : {a, b}) require_floating(x, "margin_ranking_loss", where);
  const Var order = multiply(targets, subtract(a, b, where), where);
  return reduce_loss(hinge(margin - Located(order, where), where), reduction, where);
}

Var hinge_embedding_loss(const Var& x, const Var& targets, double margin, Reduction reduction,
                         Where where) {
  require_floating(x, "hinge_embedding_loss", where);
  require_value(targets, "hinge_embedding_loss", where);
  const Var apart = hinge(margin - Located(x, where), where);
  return reduce_loss(by_target(targets, x, apart, where), reduction, where);
}

Var triplet_margin_loss(const Var& anchor, const Var& positive, const Var& negative,
                        const TripletOptions& options, Where where) {
  for (const Var& other : {positive, negative}) {
    require_vectors(anchor, other, 1, "triplet_margin_loss", where);
    broadcast(anchor.shape(), other.shape(), "triplet_margin_loss", where);
  }
  const DistanceOptions distance{options.p, options.eps};
  const Var near = pairwise_distance(anchor, positive, distance, where);
  Var far = pairwise_distance(anchor, negative, distance, where);
  if (options.swap) {
    far = minimum(far, pairwise_distance(positive, negative, distance, where), where);
  }
  const Var excess = Located(subtract(near, far, where), where) + options.margin;
  return reduce_loss(hinge(excess, where), options.reduction, where);
}

}  // namespace palimpsest
