#pragma once

#include "autodiff/export.h"
#include "autodiff/operations/loss_reduction.h"
#include "autodiff/var.h"

namespace palimpsest PALIMPSEST_EXPORT {

struct CtcOptions {
  std::int64_t blank = 0;  ///< the class that stands for no label
  /// The mean divides each loss by the length of its target, at least 1, before averaging.
  Reduction reduction = Reduction::mean;
  /// Replaces infinite losses by 0. They belong to targets that are too long for their input.
  bool zero_infinity = false;
};

/// Connectionist temporal classification: −log of the probability of the target sequences, summed
/// over all alignments (A. Graves et al., 2006). The forward-backward recursion runs in the log
/// domain, in f64.
///
/// `log_probabilities` is (T, N, C), as `log_softmax` returns it. `targets` (N, S) holds the
/// labels, padded with any numbers. `input_lengths` (N) and `target_lengths` (N) say how many steps
/// and labels of each sequence count. The last three are i64 or i32. The result before the
/// reduction is (N), in the dtype of the log-probabilities. It is ∞ where no alignment exists, with
/// derivative 0.
///
/// Only the log-probabilities are kept for the adjoint, which computes the recursion again. Second
/// and higher derivatives record the recursion as about ten operations per step.
///
/// Throws `ShapeError` when shapes do not fit, `DTypeError` for wrong dtypes, and `ArgumentError`
/// for a blank out of range. When computed, throws `ArgumentError` for a label or a length out of
/// range.
Var ctc_loss(const Var& log_probabilities, const Var& targets, const Var& input_lengths,
             const Var& target_lengths, const CtcOptions& options = {},
             Where where = Where::current());

}  // namespace palimpsest
