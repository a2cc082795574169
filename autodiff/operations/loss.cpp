#include "autodiff/operations/loss.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include "autodiff/enumerators.h"
#include "autodiff/number_text.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/counted_mean.h"
#include "autodiff/operations/elementwise.h"
#include "autodiff/operations/functions/activation.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/functions/exponential.h"
#include "autodiff/operations/functions/loss.h"
#include "autodiff/operations/index.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"

namespace palimpsest {
namespace {

void require_same_shape(const Var& a, const Var& b, const char* operation, const Where& where) {
  const Var both[] = {a, b};
  common_tape(both, operation, where);
  if (a.shape() == b.shape()) return;
  throw ShapeError(operation,
                   "the prediction has shape " + to_string(a.shape()) + ", the target " +
                       to_string(b.shape()) + "; reshape one of them",
                   where);
}

Var difference(const Var& prediction, const Var& target, const char* operation,
               const Where& where) {
  require_same_shape(prediction, target, operation, where);
  return subtract(prediction, target, where);
}

}  // namespace

Var reduce_loss(const Var& losses, Reduction reduction, Where where) {
  require_value(losses, "reduce_loss", where);
  require_enumerator(reduction,
                     {Reduction::mean, Reduction::sum, Reduction::none, Reduction::batch_mean},
                     "reduce_loss", "the reduction", where);
  switch (reduction) {
    case Reduction::mean:
      return mean(losses, {}, false, where);
    case Reduction::sum:
      return sum(losses, {}, false, where);
    case Reduction::none:
      return losses;
    case Reduction::batch_mean: {
      if (losses.rank() == 0 || losses.shape()[0] == 0) {
        throw ShapeError("reduce_loss",
                         "losses of shape " + to_string(losses.shape()) +
                             " have no mean over axis 0; give at least one",
                         where);
      }
      const Var total = sum(losses, {}, false, where);
      return Located(total, where) / static_cast<double>(losses.shape()[0]);
    }
  }
  throw InternalError("unknown reduction");
}

Var mse(const Var& prediction, const Var& target, Reduction reduction, Where where) {
  return reduce_loss(square(difference(prediction, target, "mse", where), where), reduction, where);
}

Var l1(const Var& prediction, const Var& target, Reduction reduction, Where where) {
  return reduce_loss(abs(difference(prediction, target, "l1", where), where), reduction, where);
}

Var huber(const Var& prediction, const Var& target, double delta, Reduction reduction,
          Where where) {
  const Var u = difference(prediction, target, "huber", where);
  return reduce_loss(unary<functions::HuberLoss>(u, where, {delta}), reduction, where);
}

Var smooth_l1_loss(const Var& prediction, const Var& target, double beta, Reduction reduction,
                   Where where) {
  if (!(beta >= 0)) {
    throw ArgumentError("smooth_l1_loss", "beta is " + number_text(beta) + "; give 0 or more",
                        where);
  }
  if (beta == 0) return l1(prediction, target, reduction, where);
  const Var u = difference(prediction, target, "smooth_l1_loss", where);
  const Var loss = unary<functions::HuberLoss>(u, where, {beta});
  return reduce_loss(beta == 1 ? loss : Located(loss, where) / beta, reduction, where);
}

Var binary_cross_entropy(const Var& probabilities, const Var& targets, Reduction reduction,
                         Where where) {
  const char* name = "binary_cross_entropy";
  require_same_shape(probabilities, targets, name, where);
  for (const Var& x : {probabilities, targets}) require_floating(x, name, where);
  // Where x is 0 or 1, the logarithms are constants, and the finite ones are taken of other
  // numbers.
  const auto bounded = [&](const Var& impossible, double other, auto logarithm) {
    const Var inside = palimpsest::where(impossible, other, probabilities, where);
    const Var value = clamp(logarithm(inside), -100, 0, where);
    return palimpsest::where(impossible, -100, value, where);
  };
  const Var of_one =
      bounded(equal(probabilities, 0, where), 1, [&](const Var& x) { return log(x, where); });
  const Var of_zero = bounded(equal(probabilities, 1, where), 0,
                              [&](const Var& x) { return log1p(negate(x, where), where); });
  const Var wrong = multiply(1 - Located(targets, where), of_zero, where);
  const Var likelihood = add(multiply(targets, of_one, where), wrong, where);
  return reduce_loss(negate(likelihood, where), reduction, where);
}

Var bce_with_logits(const Var& logits, const Var& targets, Reduction reduction, Where where) {
  require_same_shape(logits, targets, "bce_with_logits", where);
  return reduce_loss(binary<functions::BceWithLogits>(logits, targets, where), reduction, where);
}

Var multilabel_soft_margin_loss(const Var& logits, const Var& targets, Reduction reduction,
                                Where where) {
  require_same_shape(logits, targets, "multilabel_soft_margin_loss", where);
  const Var losses = binary<functions::BceWithLogits>(logits, targets, where);
  return reduce_loss(mean(losses, {-1}, false, where), reduction, where);
}

Var soft_margin_loss(const Var& scores, const Var& targets, Reduction reduction, Where where) {
  require_same_shape(scores, targets, "soft_margin_loss", where);
  const Var wrong = negate(multiply(targets, scores, where), where);
  return reduce_loss(softplus(wrong, where), reduction, where);
}

Var kl_div(const Var& log_probabilities, const Var& targets, const KlDivOptions& options,
           Where where) {
  require_same_shape(log_probabilities, targets, "kl_div", where);
  for (const Var& x : {log_probabilities, targets}) require_floating(x, "kl_div", where);
  const Var losses =
      options.log_target
          ? multiply(exp(targets, where), subtract(targets, log_probabilities, where), where)
          : subtract(xlogy(targets, targets, where), multiply(targets, log_probabilities, where),
                     where);
  return reduce_loss(losses, options.reduction, where);
}

Var multi_margin_loss(const Var& scores, const Var& classes, const MultiMarginOptions& options,
                      const Var& weight, Where where) {
  const char* const name = "multi_margin_loss";
  require_floating(scores, name, where);
  require_value(classes, name, where);
  Shape expected = scores.shape();
  const std::int64_t count = expected.rank() == 0 ? 0 : expected[-1];
  if (expected.rank() > 0) expected.erase(expected.rank() - 1);
  if (count == 0 || classes.shape() != expected) {
    throw ShapeError(name,
                     "the classes have shape " + to_string(classes.shape()) +
                         " for scores of shape " + to_string(scores.shape()) +
                         "; give one class for each line of scores",
                     where);
  }
  if (options.p != 1 && options.p != 2) {
    throw ArgumentError(name, "p is " + number_text(options.p) + "; give 1 or 2", where);
  }
  const Var places = unsqueeze(classes, -1, where);
  const Var excess = subtract(scores, gather(scores, -1, places, where), where);
  const Var hinge = clamp_min(Located(excess, where) + options.margin, 0, where);
  const Var terms = options.p == 1 ? hinge : square(hinge, where);
  const Var is_target = one_hot(classes, count, DType::boolean, where);
  const Var others = palimpsest::where(is_target, 0, terms, where);
  Var losses = Located(sum(others, {-1}, false, where), where) / static_cast<double>(count);
  if (weight.defined()) {
    if (weight.shape() != Shape{count}) {
      throw ShapeError(name,
                       "the weights have shape " + to_string(weight.shape()) + " for " +
                           std::to_string(count) + " classes; give one for each",
                       where);
    }
    losses = multiply(losses, index_select(weight, 0, classes, where), where);
  }
  return reduce_loss(losses, options.reduction, where);
}

Var gaussian_nll_loss(const Var& prediction, const Var& target, const Var& variance,
                      const GaussianNllOptions& options, Where where) {
  const Var u = difference(prediction, target, "gaussian_nll_loss", where);
  require_floating(variance, "gaussian_nll_loss", where);
  if (!(options.eps > 0)) {
    throw ArgumentError("gaussian_nll_loss",
                        "eps is " + number_text(options.eps) + "; give a positive variance", where);
  }
  const Var v = clamp(variance, options.eps, std::numeric_limits<double>::infinity(), where);
  const Var terms = add(log(v, where), divide(square(u, where), v, where), where);
  const Var losses = Located(terms, where) * 0.5;
  const double constant = std::log(2 * std::numbers::pi) / 2;
  return reduce_loss(options.full ? Located(losses, where) + constant : losses, options.reduction,
                     where);
}

Var poisson_nll_loss(const Var& prediction, const Var& target, const PoissonNllOptions& options,
                     Where where) {
  const char* name = "poisson_nll_loss";
  require_same_shape(prediction, target, name, where);
  for (const Var& x : {prediction, target}) require_floating(x, name, where);
  const Var rate = options.log_input ? exp(prediction, where) : prediction;
  const Var log_rate =
      options.log_input ? prediction : log(Located(prediction, where) + options.eps, where);
  Var losses = subtract(rate, multiply(target, log_rate, where), where);
  if (options.full) {
    const Var many = greater(target, 1, where);
    const Var t = palimpsest::where(many, target, 1, where);
    const Var root = Located(log(Located(t, where) * (2 * std::numbers::pi), where), where) * 0.5;
    const Var stirling = add(subtract(multiply(t, log(t, where), where), t, where), root, where);
    losses = add(losses, palimpsest::where(many, stirling, 0, where), where);
  }
  return reduce_loss(losses, options.reduction, where);
}

Var weighted_mean(const Var& total, const Var& weight, Where where) {
  const char* const name = "weighted_mean";
  require_floating(total, name, where);
  require_value(weight, name, where);
  if (total.shape().elements() != 1 || weight.shape().elements() != 1) {
    throw ShapeError(name,
                     "the total is " + to_string(total.type()) + " and the weight is " +
                         to_string(weight.type()) +
                         "; give one element each, such as sum(losses * mask) and sum(mask)",
                     where);
  }
  const Var count = cast(stop_gradient(weight, where), total.dtype(), where);
  return divide_by_count(total, count, where);
}

}  // namespace palimpsest
