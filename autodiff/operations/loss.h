#pragma once

#include <optional>

#include "autodiff/export.h"
#include "autodiff/operations/ctc.h"
#include "autodiff/operations/distance.h"
#include "autodiff/operations/loss_reduction.h"
#include "autodiff/var.h"

namespace palimpsest PALIMPSEST_EXPORT {

struct ClassificationOptions {
  Reduction reduction = Reduction::mean;
  int axis = -1;  ///< axis of the classes
  /// Share of the target distribution that is spread evenly over all classes, in [0, 1].
  double label_smoothing = 0;
  /// Targets of this class have loss 0 and do not count in the mean. It need not be a class. Where
  /// a batch is cut into parts, the mean counts the targets of the whole batch.
  std::optional<std::int64_t> ignore_index = std::nullopt;
};

/// −log softmax(logits) at each target class, reduced; the result has the dtype of the logits.
/// `logits` has the classes along `options.axis`; `classes` (integers) has its shape without that
/// axis. Only the logits are kept for the adjoint; nothing else of their size.
///
/// Throws `ShapeError` when the shapes do not fit or there are no classes, and `DTypeError` for
/// logits that are not floating. Throws `ArgumentError` for a `label_smoothing` out of range and,
/// when computed, for a class out of range.
///
/// Floating `classes` with the shape of the logits are class probabilities t. The losses are then
/// −Σ t·log softmax(logits) along the axis, with derivatives with respect to both. An
/// `ignore_index` then throws `ArgumentError`.
Var cross_entropy(const Var& logits, const Var& classes, const ClassificationOptions& options = {},
                  Where where = Where::current());

/// Like `cross_entropy`, but takes log-probabilities, as `log_softmax` returns them, and only
/// integer classes. Throws `DTypeError` for others.
Var nll(const Var& log_probabilities, const Var& classes, const ClassificationOptions& options = {},
        Where where = Where::current());

// Losses of a prediction and a target of the same shape, elementwise and then reduced. Operands are
// promoted to a common dtype. They throw `ShapeError` when the shapes differ, and `DTypeError` for
// dtypes that are not floating.

/// (prediction − target)².
Var mse(const Var& prediction, const Var& target, Reduction reduction = Reduction::mean,
        Where where = Where::current());

/// |prediction − target|.
Var l1(const Var& prediction, const Var& target, Reduction reduction = Reduction::mean,
       Where where = Where::current());

/// With u = prediction − target: u²/2 where |u| ≤ delta, else delta·(|u| − delta/2). Throws
/// `ArgumentError` unless delta > 0.
Var huber(const Var& prediction, const Var& target, double delta = 1,
          Reduction reduction = Reduction::mean, Where where = Where::current());

/// With u = prediction − target: u²/(2·beta) where |u| < beta, else |u| − beta/2; `l1` if beta is
/// 0. Throws `ArgumentError` for a negative beta.
Var smooth_l1_loss(const Var& prediction, const Var& target, double beta = 1,
                   Reduction reduction = Reduction::mean, Where where = Where::current());

/// −t·log x − (1 − t)·log(1 − x) for probabilities x and targets t. Logarithms are at least −100,
/// so that the loss is finite at 0 and 1. Prefer `bce_with_logits`.
Var binary_cross_entropy(const Var& probabilities, const Var& targets,
                         Reduction reduction = Reduction::mean, Where where = Where::current());

/// −t·log σ(x) − (1 − t)·log(1 − σ(x)) for logits x and targets t in [0, 1], without overflow.
Var bce_with_logits(const Var& logits, const Var& targets, Reduction reduction = Reduction::mean,
                    Where where = Where::current());

// PyTorch's names of the losses above.

inline Var nll_loss(const Var& log_probabilities, const Var& classes,
                    const ClassificationOptions& options = {}, Where where = Where::current()) {
  return nll(log_probabilities, classes, options, where);
}
inline Var mse_loss(const Var& prediction, const Var& target, Reduction reduction = Reduction::mean,
                    Where where = Where::current()) {
  return mse(prediction, target, reduction, where);
}
inline Var l1_loss(const Var& prediction, const Var& target, Reduction reduction = Reduction::mean,
                   Where where = Where::current()) {
  return l1(prediction, target, reduction, where);
}
inline Var huber_loss(const Var& prediction, const Var& target, double delta = 1,
                      Reduction reduction = Reduction::mean, Where where = Where::current()) {
  return huber(prediction, target, delta, reduction, where);
}
inline Var binary_cross_entropy_with_logits(const Var& logits, const Var& targets,
                                            Reduction reduction = Reduction::mean,
                                            Where where = Where::current()) {
  return bce_with_logits(logits, targets, reduction, where);
}

/// `bce_with_logits`, averaged over the classes along the last axis. The result before the
/// reduction has the shape without that axis.
Var multilabel_soft_margin_loss(const Var& logits, const Var& targets,
                                Reduction reduction = Reduction::mean,
                                Where where = Where::current());

/// log(1 + exp(−t·x)) for scores x and targets t of 1 and −1, without overflow.
Var soft_margin_loss(const Var& scores, const Var& targets, Reduction reduction = Reduction::mean,
                     Where where = Where::current());

struct MultiMarginOptions {
  Reduction reduction = Reduction::mean;
  int p = 1;  ///< power of each term, 1 or 2
  double margin = 1;
};
/// Σ max(margin − s_c + sⱼ, 0)ᵖ over classes j ≠ c, divided by the number of classes, for scores s
/// (…, classes) and target classes c (…). `weight` has a factor for each class, or is empty. Throws
/// `ShapeError` when the shapes do not fit. Throws `DTypeError` for scores that are not floating,
/// and `ArgumentError` for another p or, when computed, for a class out of range.
Var multi_margin_loss(const Var& scores, const Var& classes, const MultiMarginOptions& options = {},
                      const Var& weight = {}, Where where = Where::current());

struct KlDivOptions {
  Reduction reduction = Reduction::mean;  ///< the divergence of distributions is `batch_mean`
  bool log_target = false;                ///< the targets are logarithms of probabilities
};
/// The Kullback–Leibler divergence t·(log t − x) of log-probabilities x from probabilities t; 0
/// where t is 0.
Var kl_div(const Var& log_probabilities, const Var& targets, const KlDivOptions& options = {},
           Where where = Where::current());

struct GaussianNllOptions {
  Reduction reduction = Reduction::mean;
  bool full = false;  ///< adds the constant log(2π)/2
  double eps = 1e-6;  ///< smallest variance; the derivative is 0 below
};
/// (log v + (prediction − target)²/v)/2 for variances v, which broadcast to the prediction's shape.
/// Throws `ArgumentError` unless eps > 0.
Var gaussian_nll_loss(const Var& prediction, const Var& target, const Var& variance,
                      const GaussianNllOptions& options = {}, Where where = Where::current());

struct PoissonNllOptions {
  Reduction reduction = Reduction::mean;
  bool log_input = true;  ///< the prediction is the logarithm of the rate
  bool full = false;      ///< adds Stirling's approximation of log(t!) where t > 1
  double eps = 1e-8;      ///< added to rates in logarithms
};
/// r − t·log r for rates r and counts t.
Var poisson_nll_loss(const Var& prediction, const Var& target,
                     const PoissonNllOptions& options = {}, Where where = Where::current());

/// `total` / `weight`, for a mean that a model writes out. The total is a sum of losses. The weight
/// is the sum of what they count, such as a mask or weights of examples. Where a batch is cut into
/// parts, each part divides by its share of the weight of the whole batch. So the parts add up to
/// the mean of the whole batch, even if they weigh differently. The weight must not be negative,
/// and no derivative flows through it. It is cast to the dtype of the total. Throws `ShapeError`
/// unless both have one element, and `DTypeError` for a total that is not floating.
Var weighted_mean(const Var& total, const Var& weight, Where where = Where::current());

}  // namespace palimpsest
