#pragma once

#include <optional>

#include "autodiff/export.h"
#include "autodiff/var.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// How elementwise losses are reduced: to the mean or the sum of all elements, a scalar, or not.
enum class Reduction : std::uint8_t { mean, sum, none };

/// The mean or the sum of `losses`, or `losses` unchanged.
Var reduce_loss(const Var& losses, Reduction reduction, Where where = Where::current());

struct ClassificationOptions {
  Reduction reduction = Reduction::mean;
  int axis = -1;  ///< axis of the classes
  /// Share of the target distribution that is spread evenly over all classes, in [0, 1].
  double label_smoothing = 0;
  /// Targets of this class have loss 0 and do not count in the mean. It need not be a class.
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

/// −t·log σ(x) − (1 − t)·log(1 − σ(x)) for logits x and targets t in [0, 1], without overflow.
Var bce_with_logits(const Var& logits, const Var& targets, Reduction reduction = Reduction::mean,
                    Where where = Where::current());

}  // namespace palimpsest
