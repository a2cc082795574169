// Written by tools/tensor_functions.py, as `./dev docs` does. Do not edit.
#include "autodiff/operations/tensor_functions.h"

#include "autodiff/operations/evaluation.h"

namespace palimpsest {

Tensor convolution(const Tensor& x, const Tensor& weight, const Tensor& bias,
                   const ConvolutionOptions& options, Where where) {
  Evaluation on("convolution", where);
  const Var on_x = on(x);
  const Var on_weight = on(weight);
  const Var on_bias = on.optional(bias);
  return on.result(palimpsest::convolution(on_x, on_weight, on_bias, options, where));
}

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const ConvolutionOptions& options, Where where) {
  Evaluation on("conv1d", where);
  const Var on_x = on(x);
  const Var on_weight = on(weight);
  const Var on_bias = on.optional(bias);
  return on.result(palimpsest::conv1d(on_x, on_weight, on_bias, options, where));
}

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const ConvolutionOptions& options, Where where) {
  Evaluation on("conv2d", where);
  const Var on_x = on(x);
  const Var on_weight = on(weight);
  const Var on_bias = on.optional(bias);
  return on.result(palimpsest::conv2d(on_x, on_weight, on_bias, options, where));
}

Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const ConvolutionOptions& options, Where where) {
  Evaluation on("conv3d", where);
  const Var on_x = on(x);
  const Var on_weight = on(weight);
  const Var on_bias = on.optional(bias);
  return on.result(palimpsest::conv3d(on_x, on_weight, on_bias, options, where));
}

Tensor transposed_convolution(const Tensor& y, const Tensor& weight, const Tensor& bias,
                              const TransposedConvolutionOptions& options, Where where) {
  Evaluation on("transposed_convolution", where);
  const Var on_y = on(y);
  const Var on_weight = on(weight);
  const Var on_bias = on.optional(bias);
  return on.result(palimpsest::transposed_convolution(on_y, on_weight, on_bias, options, where));
}

Tensor resize(const Tensor& x, const PerAxis& sizes, const ResizeOptions& options, Where where) {
  Evaluation on("resize", where);
  return on.result(palimpsest::resize(on(x), sizes, options, where));
}

Tensor upsample(const Tensor& x, const PerAxis& factors, const ResizeOptions& options,
                Where where) {
  Evaluation on("upsample", where);
  return on.result(palimpsest::upsample(on(x), factors, options, where));
}

Tensor pixel_shuffle(const Tensor& x, std::int64_t r, Where where) {
  Evaluation on("pixel_shuffle", where);
  return on.result(palimpsest::pixel_shuffle(on(x), r, where));
}

Tensor pixel_unshuffle(const Tensor& x, std::int64_t r, Where where) {
  Evaluation on("pixel_unshuffle", where);
  return on.result(palimpsest::pixel_unshuffle(on(x), r, where));
}

Tensor grid_sample(const Tensor& x, const Tensor& grid, const GridSampleOptions& options,
                   Where where) {
  Evaluation on("grid_sample", where);
  const Var on_x = on(x);
  const Var on_grid = on(grid);
  return on.result(palimpsest::grid_sample(on_x, on_grid, options, where));
}

Tensor max_pool(const Tensor& x, const PerAxis& kernel, const PoolOptions& options, Where where) {
  Evaluation on("max_pool", where);
  return on.result(palimpsest::max_pool(on(x), kernel, options, where));
}

Tensor average_pool(const Tensor& x, const PerAxis& kernel, const AveragePoolOptions& options,
                    Where where) {
  Evaluation on("average_pool", where);
  return on.result(palimpsest::average_pool(on(x), kernel, options, where));
}

Tensor adaptive_max_pool(const Tensor& x, const PerAxis& sizes, Channels channels, Where where) {
  Evaluation on("adaptive_max_pool", where);
  return on.result(palimpsest::adaptive_max_pool(on(x), sizes, channels, where));
}

Tensor adaptive_average_pool(const Tensor& x, const PerAxis& sizes, Channels channels,
                             Where where) {
  Evaluation on("adaptive_average_pool", where);
  return on.result(palimpsest::adaptive_average_pool(on(x), sizes, channels, where));
}

Tensor global_max_pool(const Tensor& x, Channels channels, Where where) {
  Evaluation on("global_max_pool", where);
  return on.result(palimpsest::global_max_pool(on(x), channels, where));
}

Tensor global_average_pool(const Tensor& x, Channels channels, Where where) {
  Evaluation on("global_average_pool", where);
  return on.result(palimpsest::global_average_pool(on(x), channels, where));
}

Tensor tril(const Tensor& x, int diagonal, Where where) {
  Evaluation on("tril", where);
  return on.result(palimpsest::tril(on(x), diagonal, where));
}

Tensor triu(const Tensor& x, int diagonal, Where where) {
  Evaluation on("triu", where);
  return on.result(palimpsest::triu(on(x), diagonal, where));
}

Tensor cholesky(const Tensor& a, Where where) {
  Evaluation on("cholesky", where);
  return on.result(palimpsest::cholesky(on(a), where));
}

Tensor triangular_solve(const Tensor& a, const Tensor& b, const TriangularSolveOptions& options,
                        Where where) {
  Evaluation on("triangular_solve", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::triangular_solve(on_a, on_b, options, where));
}

Tensor solve(const Tensor& a, const Tensor& b, const SolveOptions& options, Where where) {
  Evaluation on("solve", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::solve(on_a, on_b, options, where));
}

Tensor inverse(const Tensor& a, Where where) {
  Evaluation on("inverse", where);
  return on.result(palimpsest::inverse(on(a), where));
}

Tensor det(const Tensor& a, Where where) {
  Evaluation on("det", where);
  return on.result(palimpsest::det(on(a), where));
}

Tensor logdet(const Tensor& a, Where where) {
  Evaluation on("logdet", where);
  return on.result(palimpsest::logdet(on(a), where));
}

TensorSlogdet slogdet(const Tensor& a, Where where) {
  Evaluation on("slogdet", where);
  const Slogdet made = palimpsest::slogdet(on(a), where);
  const Var values[] = {made.sign, made.log_magnitude};
  const std::vector<Tensor> all = on.results(values);
  return {all[0], all[1]};
}

TensorQr qr(const Tensor& a, Where where) {
  Evaluation on("qr", where);
  const Qr made = palimpsest::qr(on(a), where);
  const Var values[] = {made.q, made.r};
  const std::vector<Tensor> all = on.results(values);
  return {all[0], all[1]};
}

TensorEigh eigh(const Tensor& a, Where where) {
  Evaluation on("eigh", where);
  const Eigh made = palimpsest::eigh(on(a), where);
  const Var values[] = {made.values, made.vectors};
  const std::vector<Tensor> all = on.results(values);
  return {all[0], all[1]};
}

Tensor reduce_loss(const Tensor& losses, Reduction reduction, Where where) {
  Evaluation on("reduce_loss", where);
  return on.result(palimpsest::reduce_loss(on(losses), reduction, where));
}

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

Tensor bce_with_logits(const Tensor& logits, const Tensor& targets, Reduction reduction,
                       Where where) {
  Evaluation on("bce_with_logits", where);
  const Var on_logits = on(logits);
  const Var on_targets = on(targets);
  return on.result(palimpsest::bce_with_logits(on_logits, on_targets, reduction, where));
}

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon,
                  Where where) {
  Evaluation on("layer_norm", where);
  const Var on_x = on(x);
  const Var on_weight = on.optional(weight);
  const Var on_bias = on.optional(bias);
  return on.result(palimpsest::layer_norm(on_x, on_weight, on_bias, epsilon, where));
}

Tensor rms_norm(const Tensor& x, const Tensor& weight, double epsilon, Where where) {
  Evaluation on("rms_norm", where);
  const Var on_x = on(x);
  const Var on_weight = on.optional(weight);
  return on.result(palimpsest::rms_norm(on_x, on_weight, epsilon, where));
}

Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& weight, const Tensor& bias,
                  double epsilon, Where where) {
  Evaluation on("group_norm", where);
  const Var on_x = on(x);
  const Var on_weight = on.optional(weight);
  const Var on_bias = on.optional(bias);
  return on.result(palimpsest::group_norm(on_x, groups, on_weight, on_bias, epsilon, where));
}

Tensor instance_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon,
                     Where where) {
  Evaluation on("instance_norm", where);
  const Var on_x = on(x);
  const Var on_weight = on.optional(weight);
  const Var on_bias = on.optional(bias);
  return on.result(palimpsest::instance_norm(on_x, on_weight, on_bias, epsilon, where));
}

TensorBatchNorm batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias,
                           double epsilon, Where where) {
  Evaluation on("batch_norm", where);
  const Var on_x = on(x);
  const Var on_weight = on.optional(weight);
  const Var on_bias = on.optional(bias);
  const BatchNorm made = palimpsest::batch_norm(on_x, on_weight, on_bias, epsilon, where);
  const Var values[] = {made.y, made.mean, made.variance};
  const std::vector<Tensor> all = on.results(values);
  return {all[0], all[1], all[2]};
}

Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& variance, const Tensor& weight,
                  const Tensor& bias, double epsilon, Where where) {
  Evaluation on("batch_norm", where);
  const Var on_x = on(x);
  const Var on_mean = on(mean);
  const Var on_variance = on(variance);
  const Var on_weight = on(weight);
  const Var on_bias = on(bias);
  return on.result(
      palimpsest::batch_norm(on_x, on_mean, on_variance, on_weight, on_bias, epsilon, where));
}

Tensor softmax(const Tensor& x, int axis, Where where) {
  Evaluation on("softmax", where);
  return on.result(palimpsest::softmax(on(x), axis, where));
}

Tensor log_softmax(const Tensor& x, int axis, Where where) {
  Evaluation on("log_softmax", where);
  return on.result(palimpsest::log_softmax(on(x), axis, where));
}

Tensor dot(const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("dot", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::dot(on_a, on_b, where));
}

Tensor outer(const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("outer", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::outer(on_a, on_b, where));
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Where where) {
  Evaluation on("linear", where);
  const Var on_x = on(x);
  const Var on_weight = on(weight);
  const Var on_bias = on.optional(bias);
  return on.result(palimpsest::linear(on_x, on_weight, on_bias, where));
}

Tensor einsum(std::string_view equation, std::span<const Tensor> operands, Where where) {
  Evaluation on("einsum", where);
  return on.result(palimpsest::einsum(equation, on(operands), where));
}

Tensor einsum(std::string_view equation, std::initializer_list<Tensor> operands, Where where) {
  Evaluation on("einsum", where);
  return on.result(palimpsest::einsum(equation, on(operands), where));
}

Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options, Where where) {
  Evaluation on("matmul", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::matmul(on_a, on_b, options, where));
}

Tensor sparse_matmul(const SparsePattern& pattern, const Tensor& values, const Tensor& x,
                     const SparseMatmulOptions& options, Where where) {
  Evaluation on("sparse_matmul", where);
  const Var on_values = on(values);
  const Var on_x = on(x);
  return on.result(palimpsest::sparse_matmul(pattern, on_values, on_x, options, where));
}

Tensor sampled_matmul(const SparsePattern& pattern, const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("sampled_matmul", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::sampled_matmul(pattern, on_a, on_b, where));
}

}  // namespace palimpsest
