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

// autodiff/operations/convolution.h

template <IsValue A, IsValue B, IsValue C = A>
  requires AreMixed<A, B, C>
Var convolution(const A& x, const B& weight, const C& bias = {},
                const ConvolutionOptions& options = {}, Where where = Where::current()) {
  const Constants on("convolution", where, x, weight, bias);
  const Var on_x = on(x);
  const Var on_weight = on(weight);
  const Var on_bias = on.optional(bias);
  return palimpsest::convolution(on_x, on_weight, on_bias, options, where);
}

template <IsValue A, IsValue B, IsValue C = A>
  requires AreMixed<A, B, C>
Var conv1d(const A& x, const B& weight, const C& bias = {}, const ConvolutionOptions& options = {},
           Where where = Where::current()) {
  const Constants on("conv1d", where, x, weight, bias);
  const Var on_x = on(x);
  const Var on_weight = on(weight);
  const Var on_bias = on.optional(bias);
  return palimpsest::conv1d(on_x, on_weight, on_bias, options, where);
}

template <IsValue A, IsValue B, IsValue C = A>
  requires AreMixed<A, B, C>
Var conv2d(const A& x, const B& weight, const C& bias = {}, const ConvolutionOptions& options = {},
           Where where = Where::current()) {
  const Constants on("conv2d", where, x, weight, bias);
  const Var on_x = on(x);
  const Var on_weight = on(weight);
  const Var on_bias = on.optional(bias);
  return palimpsest::conv2d(on_x, on_weight, on_bias, options, where);
}

template <IsValue A, IsValue B, IsValue C = A>
  requires AreMixed<A, B, C>
Var conv3d(const A& x, const B& weight, const C& bias = {}, const ConvolutionOptions& options = {},
           Where where = Where::current()) {
  const Constants on("conv3d", where, x, weight, bias);
  const Var on_x = on(x);
  const Var on_weight = on(weight);
  const Var on_bias = on.optional(bias);
  return palimpsest::conv3d(on_x, on_weight, on_bias, options, where);
}

template <IsValue A, IsValue B, IsValue C = A>
  requires AreMixed<A, B, C>
Var transposed_convolution(const A& y, const B& weight, const C& bias = {},
                           const TransposedConvolutionOptions& options = {},
                           Where where = Where::current()) {
  const Constants on("transposed_convolution", where, y, weight, bias);
  const Var on_y = on(y);
  const Var on_weight = on(weight);
  const Var on_bias = on.optional(bias);
  return palimpsest::transposed_convolution(on_y, on_weight, on_bias, options, where);
}

// autodiff/operations/image.h

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var grid_sample(const A& x, const B& grid, const GridSampleOptions& options = {},
                Where where = Where::current()) {
  const Constants on("grid_sample", where, x, grid);
  const Var on_x = on(x);
  const Var on_grid = on(grid);
  return palimpsest::grid_sample(on_x, on_grid, options, where);
}

// autodiff/operations/loss.h

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var cross_entropy(const A& logits, const B& classes, const ClassificationOptions& options = {},
                  Where where = Where::current()) {
  const Constants on("cross_entropy", where, logits, classes);
  const Var on_logits = on(logits);
  const Var on_classes = on(classes);
  return palimpsest::cross_entropy(on_logits, on_classes, options, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var nll(const A& log_probabilities, const B& classes, const ClassificationOptions& options = {},
        Where where = Where::current()) {
  const Constants on("nll", where, log_probabilities, classes);
  const Var on_log_probabilities = on(log_probabilities);
  const Var on_classes = on(classes);
  return palimpsest::nll(on_log_probabilities, on_classes, options, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var mse(const A& prediction, const B& target, Reduction reduction = Reduction::mean,
        Where where = Where::current()) {
  const Constants on("mse", where, prediction, target);
  const Var on_prediction = on(prediction);
  const Var on_target = on(target);
  return palimpsest::mse(on_prediction, on_target, reduction, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var l1(const A& prediction, const B& target, Reduction reduction = Reduction::mean,
       Where where = Where::current()) {
  const Constants on("l1", where, prediction, target);
  const Var on_prediction = on(prediction);
  const Var on_target = on(target);
  return palimpsest::l1(on_prediction, on_target, reduction, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var huber(const A& prediction, const B& target, double delta = 1,
          Reduction reduction = Reduction::mean, Where where = Where::current()) {
  const Constants on("huber", where, prediction, target);
  const Var on_prediction = on(prediction);
  const Var on_target = on(target);
  return palimpsest::huber(on_prediction, on_target, delta, reduction, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var smooth_l1_loss(const A& prediction, const B& target, double beta = 1,
                   Reduction reduction = Reduction::mean, Where where = Where::current()) {
  const Constants on("smooth_l1_loss", where, prediction, target);
  const Var on_prediction = on(prediction);
  const Var on_target = on(target);
  return palimpsest::smooth_l1_loss(on_prediction, on_target, beta, reduction, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var binary_cross_entropy(const A& probabilities, const B& targets,
                         Reduction reduction = Reduction::mean, Where where = Where::current()) {
  const Constants on("binary_cross_entropy", where, probabilities, targets);
  const Var on_probabilities = on(probabilities);
  const Var on_targets = on(targets);
  return palimpsest::binary_cross_entropy(on_probabilities, on_targets, reduction, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var bce_with_logits(const A& logits, const B& targets, Reduction reduction = Reduction::mean,
                    Where where = Where::current()) {
  const Constants on("bce_with_logits", where, logits, targets);
  const Var on_logits = on(logits);
  const Var on_targets = on(targets);
  return palimpsest::bce_with_logits(on_logits, on_targets, reduction, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var nll_loss(const A& log_probabilities, const B& classes,
             const ClassificationOptions& options = {}, Where where = Where::current()) {
  const Constants on("nll_loss", where, log_probabilities, classes);
  const Var on_log_probabilities = on(log_probabilities);
  const Var on_classes = on(classes);
  return palimpsest::nll_loss(on_log_probabilities, on_classes, options, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var mse_loss(const A& prediction, const B& target, Reduction reduction = Reduction::mean,
             Where where = Where::current()) {
  const Constants on("mse_loss", where, prediction, target);
  const Var on_prediction = on(prediction);
  const Var on_target = on(target);
  return palimpsest::mse_loss(on_prediction, on_target, reduction, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var l1_loss(const A& prediction, const B& target, Reduction reduction = Reduction::mean,
            Where where = Where::current()) {
  const Constants on("l1_loss", where, prediction, target);
  const Var on_prediction = on(prediction);
  const Var on_target = on(target);
  return palimpsest::l1_loss(on_prediction, on_target, reduction, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var huber_loss(const A& prediction, const B& target, double delta = 1,
               Reduction reduction = Reduction::mean, Where where = Where::current()) {
  const Constants on("huber_loss", where, prediction, target);
  const Var on_prediction = on(prediction);
  const Var on_target = on(target);
  return palimpsest::huber_loss(on_prediction, on_target, delta, reduction, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var binary_cross_entropy_with_logits(const A& logits, const B& targets,
                                     Reduction reduction = Reduction::mean,
                                     Where where = Where::current()) {
  const Constants on("binary_cross_entropy_with_logits", where, logits, targets);
  const Var on_logits = on(logits);
  const Var on_targets = on(targets);
  return palimpsest::binary_cross_entropy_with_logits(on_logits, on_targets, reduction, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var multilabel_soft_margin_loss(const A& logits, const B& targets,
                                Reduction reduction = Reduction::mean,
                                Where where = Where::current()) {
  const Constants on("multilabel_soft_margin_loss", where, logits, targets);
  const Var on_logits = on(logits);
  const Var on_targets = on(targets);
  return palimpsest::multilabel_soft_margin_loss(on_logits, on_targets, reduction, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var soft_margin_loss(const A& scores, const B& targets, Reduction reduction = Reduction::mean,
                     Where where = Where::current()) {
  const Constants on("soft_margin_loss", where, scores, targets);
  const Var on_scores = on(scores);
  const Var on_targets = on(targets);
  return palimpsest::soft_margin_loss(on_scores, on_targets, reduction, where);
}

template <IsValue A, IsValue B, IsValue C = A>
  requires AreMixed<A, B, C>
Var multi_margin_loss(const A& scores, const B& classes, const MultiMarginOptions& options = {},
                      const C& weight = {}, Where where = Where::current()) {
  const Constants on("multi_margin_loss", where, scores, classes, weight);
  const Var on_scores = on(scores);
  const Var on_classes = on(classes);
  const Var on_weight = on.optional(weight);
  return palimpsest::multi_margin_loss(on_scores, on_classes, options, on_weight, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var kl_div(const A& log_probabilities, const B& targets, const KlDivOptions& options = {},
           Where where = Where::current()) {
  const Constants on("kl_div", where, log_probabilities, targets);
  const Var on_log_probabilities = on(log_probabilities);
  const Var on_targets = on(targets);
  return palimpsest::kl_div(on_log_probabilities, on_targets, options, where);
}

template <IsValue A, IsValue B, IsValue C>
  requires AreMixed<A, B, C>
Var gaussian_nll_loss(const A& prediction, const B& target, const C& variance,
                      const GaussianNllOptions& options = {}, Where where = Where::current()) {
  const Constants on("gaussian_nll_loss", where, prediction, target, variance);
  const Var on_prediction = on(prediction);
  const Var on_target = on(target);
  const Var on_variance = on(variance);
  return palimpsest::gaussian_nll_loss(on_prediction, on_target, on_variance, options, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var poisson_nll_loss(const A& prediction, const B& target, const PoissonNllOptions& options = {},
                     Where where = Where::current()) {
  const Constants on("poisson_nll_loss", where, prediction, target);
  const Var on_prediction = on(prediction);
  const Var on_target = on(target);
  return palimpsest::poisson_nll_loss(on_prediction, on_target, options, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var weighted_mean(const A& total, const B& weight, Where where = Where::current()) {
  const Constants on("weighted_mean", where, total, weight);
  const Var on_total = on(total);
  const Var on_weight = on(weight);
  return palimpsest::weighted_mean(on_total, on_weight, where);
}

// autodiff/operations/normalization.h

template <IsValue A, IsValue B = A, IsValue C = A>
  requires AreMixed<A, B, C>
Var layer_norm(const A& x, const B& weight = {}, const C& bias = {}, double epsilon = 1e-5,
               Where where = Where::current()) {
  const Constants on("layer_norm", where, x, weight, bias);
  const Var on_x = on(x);
  const Var on_weight = on.optional(weight);
  const Var on_bias = on.optional(bias);
  return palimpsest::layer_norm(on_x, on_weight, on_bias, epsilon, where);
}

template <IsValue A, IsValue B = A>
  requires AreMixed<A, B>
Var rms_norm(const A& x, const B& weight = {}, double epsilon = 1e-6,
             Where where = Where::current()) {
  const Constants on("rms_norm", where, x, weight);
  const Var on_x = on(x);
  const Var on_weight = on.optional(weight);
  return palimpsest::rms_norm(on_x, on_weight, epsilon, where);
}

template <IsValue A, IsValue B = A, IsValue C = A>
  requires AreMixed<A, B, C>
Var group_norm(const A& x, std::int64_t groups, const B& weight = {}, const C& bias = {},
               double epsilon = 1e-5, Where where = Where::current()) {
  const Constants on("group_norm", where, x, weight, bias);
  const Var on_x = on(x);
  const Var on_weight = on.optional(weight);
  const Var on_bias = on.optional(bias);
  return palimpsest::group_norm(on_x, groups, on_weight, on_bias, epsilon, where);
}

template <IsValue A, IsValue B = A, IsValue C = A>
  requires AreMixed<A, B, C>
Var instance_norm(const A& x, const B& weight = {}, const C& bias = {}, double epsilon = 1e-5,
                  Where where = Where::current()) {
  const Constants on("instance_norm", where, x, weight, bias);
  const Var on_x = on(x);
  const Var on_weight = on.optional(weight);
  const Var on_bias = on.optional(bias);
  return palimpsest::instance_norm(on_x, on_weight, on_bias, epsilon, where);
}

template <IsValue A, IsValue B = A, IsValue C = A>
  requires AreMixed<A, B, C>
BatchNorm batch_norm(const A& x, const B& weight = {}, const C& bias = {}, double epsilon = 1e-5,
                     Where where = Where::current()) {
  const Constants on("batch_norm", where, x, weight, bias);
  const Var on_x = on(x);
  const Var on_weight = on.optional(weight);
  const Var on_bias = on.optional(bias);
  return palimpsest::batch_norm(on_x, on_weight, on_bias, epsilon, where);
}

template <IsValue A, IsValue B, IsValue C, IsValue D, IsValue E>
  requires AreMixed<A, B, C, D, E>
Var batch_norm(const A& x, const B& mean, const C& variance, const D& weight, const E& bias,
               double epsilon = 1e-5, Where where = Where::current()) {
  const Constants on("batch_norm", where, x, mean, variance, weight, bias);
  const Var on_x = on(x);
  const Var on_mean = on(mean);
  const Var on_variance = on(variance);
  const Var on_weight = on(weight);
  const Var on_bias = on(bias);
  return palimpsest::batch_norm(on_x, on_mean, on_variance, on_weight, on_bias, epsilon, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var weight_norm(const A& direction, const B& magnitude, int axis = 0,
                Where where = Where::current()) {
  const Constants on("weight_norm", where, direction, magnitude);
  const Var on_direction = on(direction);
  const Var on_magnitude = on(magnitude);
  return palimpsest::weight_norm(on_direction, on_magnitude, axis, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
SpectralNorm spectral_norm(const A& weight, const B& u, const SpectralNormOptions& options = {},
                           Where where = Where::current()) {
  const Constants on("spectral_norm", where, weight, u);
  const Var on_weight = on(weight);
  const Var on_u = on(u);
  return palimpsest::spectral_norm(on_weight, on_u, options, where);
}

// autodiff/operations/sequence.h

template <IsValue A, IsValue B, IsValue C>
  requires AreMixed<A, B, C>
Var scaled_dot_product_attention(const A& q, const B& k, const C& v,
                                 const AttentionOptions& options = {},
                                 Where where = Where::current()) {
  const Constants on("scaled_dot_product_attention", where, q, k, v);
  const Var on_q = on(q);
  const Var on_k = on(k);
  const Var on_v = on(v);
  return palimpsest::scaled_dot_product_attention(on_q, on_k, on_v, options, where);
}

template <IsValue A, IsValue B, IsValue C>
  requires AreMixed<A, B, C>
Var multi_head_attention(const A& queries, const B& keys, const C& values,
                         const AttentionParameters& parameters, std::int64_t heads,
                         const AttentionOptions& options = {}, Where where = Where::current()) {
  const Constants on("multi_head_attention", where, queries, keys, values);
  const Var on_queries = on(queries);
  const Var on_keys = on(keys);
  const Var on_values = on(values);
  return palimpsest::multi_head_attention(on_queries, on_keys, on_values, parameters, heads,
                                          options, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var rnn_cell(const A& x, const B& h, const CellParameters& parameters,
             CellActivation activation = CellActivation::tanh, Where where = Where::current()) {
  const Constants on("rnn_cell", where, x, h);
  const Var on_x = on(x);
  const Var on_h = on(h);
  return palimpsest::rnn_cell(on_x, on_h, parameters, activation, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
Var gru_cell(const A& x, const B& h, const CellParameters& parameters,
             Where where = Where::current()) {
  const Constants on("gru_cell", where, x, h);
  const Var on_x = on(x);
  const Var on_h = on(h);
  return palimpsest::gru_cell(on_x, on_h, parameters, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
RecurrentOutput rnn(const A& x, const B& h, const CellParameters& parameters,
                    CellActivation activation = CellActivation::tanh,
                    Where where = Where::current()) {
  const Constants on("rnn", where, x, h);
  const Var on_x = on(x);
  const Var on_h = on(h);
  return palimpsest::rnn(on_x, on_h, parameters, activation, where);
}

template <IsValue A, IsValue B>
  requires AreMixed<A, B>
RecurrentOutput gru(const A& x, const B& h, const CellParameters& parameters,
                    Where where = Where::current()) {
  const Constants on("gru", where, x, h);
  const Var on_x = on(x);
  const Var on_h = on(h);
  return palimpsest::gru(on_x, on_h, parameters, where);
}

}  // namespace palimpsest
