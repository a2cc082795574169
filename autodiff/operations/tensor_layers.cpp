// Written by tools/tensor_functions.py, as `./dev docs` does. Do not edit.
#include "autodiff/operations/tensor_layers.h"

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

Tensor unfold(const Tensor& x, const PerAxis& kernel, const UnfoldOptions& options, Where where) {
  Evaluation on("unfold", where);
  return on.result(palimpsest::unfold(on(x), kernel, options, where));
}

Tensor fold(const Tensor& x, std::span<const std::int64_t> sizes, const PerAxis& kernel,
            const UnfoldOptions& options, Where where) {
  Evaluation on("fold", where);
  return on.result(palimpsest::fold(on(x), sizes, kernel, options, where));
}

Tensor fold(const Tensor& x, std::initializer_list<std::int64_t> sizes, const PerAxis& kernel,
            const UnfoldOptions& options, Where where) {
  Evaluation on("fold", where);
  return on.result(palimpsest::fold(on(x), sizes, kernel, options, where));
}

Tensor resize(const Tensor& x, const PerAxis& sizes, const ResizeOptions& options, Where where) {
  Evaluation on("resize", where);
  return on.result(palimpsest::resize(on(x), sizes, options, where));
}

Tensor interpolate(const Tensor& x, const PerAxis& sizes, const ResizeOptions& options,
                   Where where) {
  Evaluation on("interpolate", where);
  return on.result(palimpsest::interpolate(on(x), sizes, options, where));
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

Tensor channel_shuffle(const Tensor& x, std::int64_t groups, Where where) {
  Evaluation on("channel_shuffle", where);
  return on.result(palimpsest::channel_shuffle(on(x), groups, where));
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

Tensor lp_pool(const Tensor& x, double p, const PerAxis& kernel, const LpPoolOptions& options,
               Where where) {
  Evaluation on("lp_pool", where);
  return on.result(palimpsest::lp_pool(on(x), p, kernel, options, where));
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

Tensor weight_norm(const Tensor& direction, const Tensor& magnitude, int axis, Where where) {
  Evaluation on("weight_norm", where);
  const Var on_direction = on(direction);
  const Var on_magnitude = on(magnitude);
  return on.result(palimpsest::weight_norm(on_direction, on_magnitude, axis, where));
}

TensorSpectralNorm spectral_norm(const Tensor& weight, const Tensor& u,
                                 const SpectralNormOptions& options, Where where) {
  Evaluation on("spectral_norm", where);
  const Var on_weight = on(weight);
  const Var on_u = on(u);
  const SpectralNorm made = palimpsest::spectral_norm(on_weight, on_u, options, where);
  const Var values[] = {made.weight, made.u, made.sigma};
  const std::vector<Tensor> all = on.results(values);
  return {all[0], all[1], all[2]};
}

Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const TensorAttentionOptions& options, Where where) {
  Evaluation on("scaled_dot_product_attention", where);
  const Var on_q = on(q);
  const Var on_k = on(k);
  const Var on_v = on(v);
  const AttentionOptions on_options{
      .mask = on.optional(options.mask), .causal = options.causal, .scale = options.scale};
  return on.result(palimpsest::scaled_dot_product_attention(on_q, on_k, on_v, on_options, where));
}

Tensor multi_head_attention(const Tensor& queries, const Tensor& keys, const Tensor& values,
                            const TensorAttentionParameters& parameters, std::int64_t heads,
                            const TensorAttentionOptions& options, Where where) {
  Evaluation on("multi_head_attention", where);
  const Var on_queries = on(queries);
  const Var on_keys = on(keys);
  const Var on_values = on(values);
  const AttentionParameters on_parameters{.query = on(parameters.query),
                                          .key = on(parameters.key),
                                          .value = on(parameters.value),
                                          .output = on(parameters.output),
                                          .query_bias = on.optional(parameters.query_bias),
                                          .key_bias = on.optional(parameters.key_bias),
                                          .value_bias = on.optional(parameters.value_bias),
                                          .output_bias = on.optional(parameters.output_bias),
                                          .key_heads = parameters.key_heads};
  const AttentionOptions on_options{
      .mask = on.optional(options.mask), .causal = options.causal, .scale = options.scale};
  return on.result(palimpsest::multi_head_attention(on_queries, on_keys, on_values, on_parameters,
                                                    heads, on_options, where));
}

Tensor multi_head_attention(const Tensor& x, const TensorAttentionParameters& parameters,
                            std::int64_t heads, const TensorAttentionOptions& options,
                            Where where) {
  Evaluation on("multi_head_attention", where);
  const Var on_x = on(x);
  const AttentionParameters on_parameters{.query = on(parameters.query),
                                          .key = on(parameters.key),
                                          .value = on(parameters.value),
                                          .output = on(parameters.output),
                                          .query_bias = on.optional(parameters.query_bias),
                                          .key_bias = on.optional(parameters.key_bias),
                                          .value_bias = on.optional(parameters.value_bias),
                                          .output_bias = on.optional(parameters.output_bias),
                                          .key_heads = parameters.key_heads};
  const AttentionOptions on_options{
      .mask = on.optional(options.mask), .causal = options.causal, .scale = options.scale};
  return on.result(palimpsest::multi_head_attention(on_x, on_parameters, heads, on_options, where));
}

Tensor rotary_embedding(const Tensor& x, const TensorRotaryOptions& options, Where where) {
  Evaluation on("rotary_embedding", where);
  const Var on_x = on(x);
  const RotaryOptions on_options{.positions = on.optional(options.positions),
                                 .offset = options.offset,
                                 .base = options.base,
                                 .interleaved = options.interleaved};
  return on.result(palimpsest::rotary_embedding(on_x, on_options, where));
}

Tensor rnn_cell(const Tensor& x, const Tensor& h, const TensorCellParameters& parameters,
                CellActivation activation, Where where) {
  Evaluation on("rnn_cell", where);
  const Var on_x = on(x);
  const Var on_h = on(h);
  const CellParameters on_parameters{.input = on(parameters.input),
                                     .hidden = on(parameters.hidden),
                                     .bias = on.optional(parameters.bias),
                                     .hidden_bias = on.optional(parameters.hidden_bias)};
  return on.result(palimpsest::rnn_cell(on_x, on_h, on_parameters, activation, where));
}

TensorLstmState lstm_cell(const Tensor& x, const TensorLstmState& state,
                          const TensorCellParameters& parameters, Where where) {
  Evaluation on("lstm_cell", where);
  const Var on_x = on(x);
  const LstmState on_state{.h = on(state.h), .c = on(state.c)};
  const CellParameters on_parameters{.input = on(parameters.input),
                                     .hidden = on(parameters.hidden),
                                     .bias = on.optional(parameters.bias),
                                     .hidden_bias = on.optional(parameters.hidden_bias)};
  const LstmState made = palimpsest::lstm_cell(on_x, on_state, on_parameters, where);
  const Var values[] = {made.h, made.c};
  const std::vector<Tensor> all = on.results(values);
  return {all[0], all[1]};
}

Tensor gru_cell(const Tensor& x, const Tensor& h, const TensorCellParameters& parameters,
                Where where) {
  Evaluation on("gru_cell", where);
  const Var on_x = on(x);
  const Var on_h = on(h);
  const CellParameters on_parameters{.input = on(parameters.input),
                                     .hidden = on(parameters.hidden),
                                     .bias = on.optional(parameters.bias),
                                     .hidden_bias = on.optional(parameters.hidden_bias)};
  return on.result(palimpsest::gru_cell(on_x, on_h, on_parameters, where));
}

TensorRecurrentOutput rnn(const Tensor& x, const Tensor& h, const TensorCellParameters& parameters,
                          CellActivation activation, Where where) {
  Evaluation on("rnn", where);
  const Var on_x = on(x);
  const Var on_h = on(h);
  const CellParameters on_parameters{.input = on(parameters.input),
                                     .hidden = on(parameters.hidden),
                                     .bias = on.optional(parameters.bias),
                                     .hidden_bias = on.optional(parameters.hidden_bias)};
  const RecurrentOutput made = palimpsest::rnn(on_x, on_h, on_parameters, activation, where);
  const Var values[] = {made.outputs, made.h};
  const std::vector<Tensor> all = on.results(values);
  return {all[0], all[1]};
}

TensorRecurrentOutput gru(const Tensor& x, const Tensor& h, const TensorCellParameters& parameters,
                          Where where) {
  Evaluation on("gru", where);
  const Var on_x = on(x);
  const Var on_h = on(h);
  const CellParameters on_parameters{.input = on(parameters.input),
                                     .hidden = on(parameters.hidden),
                                     .bias = on.optional(parameters.bias),
                                     .hidden_bias = on.optional(parameters.hidden_bias)};
  const RecurrentOutput made = palimpsest::gru(on_x, on_h, on_parameters, where);
  const Var values[] = {made.outputs, made.h};
  const std::vector<Tensor> all = on.results(values);
  return {all[0], all[1]};
}

TensorLstmOutput lstm(const Tensor& x, const TensorLstmState& state,
                      const TensorCellParameters& parameters, Where where) {
  Evaluation on("lstm", where);
  const Var on_x = on(x);
  const LstmState on_state{.h = on(state.h), .c = on(state.c)};
  const CellParameters on_parameters{.input = on(parameters.input),
                                     .hidden = on(parameters.hidden),
                                     .bias = on.optional(parameters.bias),
                                     .hidden_bias = on.optional(parameters.hidden_bias)};
  const LstmOutput made = palimpsest::lstm(on_x, on_state, on_parameters, where);
  const Var values[] = {made.outputs, made.state.h, made.state.c};
  const std::vector<Tensor> all = on.results(values);
  return {all[0], {all[1], all[2]}};
}

}  // namespace palimpsest
