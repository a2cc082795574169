// Written by tools/tensor_functions.py, as `./dev docs` does. Do not edit.
#include "autodiff/operations/tensor_layers.h"

#include "autodiff/operations/evaluation.h"

namespace palimpsest {

Tensor cross_entropy(const Tensor& logits, const Tensor& classes,
                     const ClassificationOptions& options, Where where) {
  Evaluation on("cross_entropy", where);
  const Var on_logits = on(logits);
  const Var on_classes = on(classes);
  return on.result(palimpsest::cross_entropy(on_logits, on_classes, options, where));
}

Tensor nll(const Tensor& log_probabilities, const Tensor& classes,
           const ClassificationOptions& options, Where where) {
  Evaluation on("nll", where);
  const Var on_log_probabilities = on(log_probabilities);
  const Var on_classes = on(classes);
  return on.result(palimpsest::nll(on_log_probabilities, on_classes, options, where));
}

Tensor mse(const Tensor& prediction, const Tensor& target, Reduction reduction, Where where) {
  Evaluation on("mse", where);
  const Var on_prediction = on(prediction);
  const Var on_target = on(target);
  return on.result(palimpsest::mse(on_prediction, on_target, reduction, where));
}

Tensor l1(const Tensor& prediction, const Tensor& target, Reduction reduction, Where where) {
  Evaluation on("l1", where);
  const Var on_prediction = on(prediction);
  const Var on_target = on(target);
  return on.result(palimpsest::l1(on_prediction, on_target, reduction, where));
}

Tensor huber(const Tensor& prediction, const Tensor& target, double delta, Reduction reduction,
             Where where) {
  Evaluation on("huber", where);
  const Var on_prediction = on(prediction);
  const Var on_target = on(target);
  return on.result(palimpsest::huber(on_prediction, on_target, delta, reduction, where));
}

Tensor smooth_l1_loss(const Tensor& prediction, const Tensor& target, double beta,
                      Reduction reduction, Where where) {
  Evaluation on("smooth_l1_loss", where);
  const Var on_prediction = on(prediction);
  const Var on_target = on(target);
  return on.result(palimpsest::smooth_l1_loss(on_prediction, on_target, beta, reduction, where));
}

Tensor binary_cross_entropy(const Tensor& probabilities, const Tensor& targets, Reduction reduction,
                            Where where) {
  Evaluation on("binary_cross_entropy", where);
  const Var on_probabilities = on(probabilities);
  const Var on_targets = on(targets);
  return on.result(
      palimpsest::binary_cross_entropy(on_probabilities, on_targets, reduction, where));
}

Tensor bce_with_logits(const Tensor& logits, const Tensor& targets, Reduction reduction,
                       Where where) {
  Evaluation on("bce_with_logits", where);
  const Var on_logits = on(logits);
  const Var on_targets = on(targets);
  return on.result(palimpsest::bce_with_logits(on_logits, on_targets, reduction, where));
}

Tensor nll_loss(const Tensor& log_probabilities, const Tensor& classes,
                const ClassificationOptions& options, Where where) {
  Evaluation on("nll_loss", where);
  const Var on_log_probabilities = on(log_probabilities);
  const Var on_classes = on(classes);
  return on.result(palimpsest::nll_loss(on_log_probabilities, on_classes, options, where));
}

Tensor mse_loss(const Tensor& prediction, const Tensor& target, Reduction reduction, Where where) {
  Evaluation on("mse_loss", where);
  const Var on_prediction = on(prediction);
  const Var on_target = on(target);
  return on.result(palimpsest::mse_loss(on_prediction, on_target, reduction, where));
}

Tensor l1_loss(const Tensor& prediction, const Tensor& target, Reduction reduction, Where where) {
  Evaluation on("l1_loss", where);
  const Var on_prediction = on(prediction);
  const Var on_target = on(target);
  return on.result(palimpsest::l1_loss(on_prediction, on_target, reduction, where));
}

Tensor huber_loss(const Tensor& prediction, const Tensor& target, double delta, Reduction reduction,
                  Where where) {
  Evaluation on("huber_loss", where);
  const Var on_prediction = on(prediction);
  const Var on_target = on(target);
  return on.result(palimpsest::huber_loss(on_prediction, on_target, delta, reduction, where));
}

Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& targets,
                                        Reduction reduction, Where where) {
  Evaluation on("binary_cross_entropy_with_logits", where);
  const Var on_logits = on(logits);
  const Var on_targets = on(targets);
  return on.result(
      palimpsest::binary_cross_entropy_with_logits(on_logits, on_targets, reduction, where));
}

Tensor multilabel_soft_margin_loss(const Tensor& logits, const Tensor& targets, Reduction reduction,
                                   Where where) {
  Evaluation on("multilabel_soft_margin_loss", where);
  const Var on_logits = on(logits);
  const Var on_targets = on(targets);
  return on.result(
      palimpsest::multilabel_soft_margin_loss(on_logits, on_targets, reduction, where));
}

Tensor soft_margin_loss(const Tensor& scores, const Tensor& targets, Reduction reduction,
                        Where where) {
  Evaluation on("soft_margin_loss", where);
  const Var on_scores = on(scores);
  const Var on_targets = on(targets);
  return on.result(palimpsest::soft_margin_loss(on_scores, on_targets, reduction, where));
}

Tensor multi_margin_loss(const Tensor& scores, const Tensor& classes,
                         const MultiMarginOptions& options, const Tensor& weight, Where where) {
  Evaluation on("multi_margin_loss", where);
  const Var on_scores = on(scores);
  const Var on_classes = on(classes);
  const Var on_weight = on.optional(weight);
  return on.result(palimpsest::multi_margin_loss(on_scores, on_classes, options, on_weight, where));
}

Tensor kl_div(const Tensor& log_probabilities, const Tensor& targets, const KlDivOptions& options,
              Where where) {
  Evaluation on("kl_div", where);
  const Var on_log_probabilities = on(log_probabilities);
  const Var on_targets = on(targets);
  return on.result(palimpsest::kl_div(on_log_probabilities, on_targets, options, where));
}

Tensor gaussian_nll_loss(const Tensor& prediction, const Tensor& target, const Tensor& variance,
                         const GaussianNllOptions& options, Where where) {
  Evaluation on("gaussian_nll_loss", where);
  const Var on_prediction = on(prediction);
  const Var on_target = on(target);
  const Var on_variance = on(variance);
  return on.result(
      palimpsest::gaussian_nll_loss(on_prediction, on_target, on_variance, options, where));
}

Tensor poisson_nll_loss(const Tensor& prediction, const Tensor& target,
                        const PoissonNllOptions& options, Where where) {
  Evaluation on("poisson_nll_loss", where);
  const Var on_prediction = on(prediction);
  const Var on_target = on(target);
  return on.result(palimpsest::poisson_nll_loss(on_prediction, on_target, options, where));
}

Tensor weighted_mean(const Tensor& total, const Tensor& weight, Where where) {
  Evaluation on("weighted_mean", where);
  const Var on_total = on(total);
  const Var on_weight = on(weight);
  return on.result(palimpsest::weighted_mean(on_total, on_weight, where));
}

}  // namespace palimpsest
