#pragma once

#include <optional>

#include "autodiff/var.h"

namespace palimpsest {

/// What becomes of one loss a place.
enum class Reduction : std::uint8_t { mean, sum, none };

/// `losses` reduced to their mean or sum, or as they are.
Var reduce_loss(const Var& losses, Reduction reduction, Where where = Where::current());

struct ClassificationOptions {
  Reduction reduction = Reduction::mean;
  int axis = -1;  ///< of the classes
  /// Share of the target spread evenly over all classes, in [0, 1].
  double label_smoothing = 0;
  /// Places of this class have loss 0 and do not count in the mean.
  std::optional<std::int64_t> ignore_index = std::nullopt;
};

/// −log softmax(logits) at each place's class: `logits` has the classes along an axis, `classes`
/// (i64 or i32) the shape without it. Nothing of the size of the logits but themselves is kept.
/// Throws `ShapeError`, `DTypeError`; when it runs, `ArgumentError` for a class out of range.
///
/// Floating `classes` of the shape of the logits are probabilities t of the classes: the losses are
/// −Σ t·log softmax(logits) along the axis, with derivatives with respect to both. Throws
/// `ArgumentError` for an `ignore_index` with them.
Var cross_entropy(const Var& logits, const Var& classes, const ClassificationOptions& options = {},
                  Where where = Where::current());

/// The same of logarithms of probabilities, as `log_softmax` gives them.
Var nll(const Var& log_probabilities, const Var& classes, const ClassificationOptions& options = {},
        Where where = Where::current());

// Losses of a prediction and a target of the same shape; `ShapeError` when they differ.
// ------------

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

/// −t·log σ(x) − (1 − t)·log(1 − σ(x)) of logits x and targets t in [0, 1], without overflow.
Var bce_with_logits(const Var& logits, const Var& targets, Reduction reduction = Reduction::mean,
                    Where where = Where::current());

}  // namespace palimpsest
