// Written by tools/tensor_functions.py, as `./dev docs` does. Do not edit.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "autodiff/export.h"
#include "autodiff/operations/binary.h"
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
#include "autodiff/operations/tensor_results.h"
#include "autodiff/operations/unary.h"
#include "autodiff/tensor.h"

/// The functions of `Var`, for tensors. They compute at once, by the same kernels, and need no tape
/// of users. dtypes, broadcasting and errors are those of the functions of `Var`, which the named
/// headers document. Nothing is kept for derivatives, and no budget counts the memory. Functions
/// that compute nothing, such as `reshape`, return a tensor that shares the storage of their
/// argument.
namespace palimpsest PALIMPSEST_EXPORT {

// autodiff/operations/convolution.h

Tensor convolution(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                   const ConvolutionOptions& options = {}, Where where = Where::current());
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              const ConvolutionOptions& options = {}, Where where = Where::current());
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              const ConvolutionOptions& options = {}, Where where = Where::current());
Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              const ConvolutionOptions& options = {}, Where where = Where::current());
Tensor transposed_convolution(const Tensor& y, const Tensor& weight, const Tensor& bias = {},
                              const TransposedConvolutionOptions& options = {},
                              Where where = Where::current());
Tensor unfold(const Tensor& x, const PerAxis& kernel, const UnfoldOptions& options = {},
              Where where = Where::current());
Tensor fold(const Tensor& x, std::span<const std::int64_t> sizes, const PerAxis& kernel,
            const UnfoldOptions& options = {}, Where where = Where::current());
Tensor fold(const Tensor& x, std::initializer_list<std::int64_t> sizes, const PerAxis& kernel,
            const UnfoldOptions& options = {}, Where where = Where::current());

// autodiff/operations/image.h

Tensor resize(const Tensor& x, const PerAxis& sizes, const ResizeOptions& options = {},
              Where where = Where::current());
Tensor interpolate(const Tensor& x, const PerAxis& sizes, const ResizeOptions& options = {},
                   Where where = Where::current());
Tensor upsample(const Tensor& x, const PerAxis& factors, const ResizeOptions& options = {},
                Where where = Where::current());
Tensor pixel_shuffle(const Tensor& x, std::int64_t r, Where where = Where::current());
Tensor pixel_unshuffle(const Tensor& x, std::int64_t r, Where where = Where::current());
Tensor channel_shuffle(const Tensor& x, std::int64_t groups, Where where = Where::current());
Tensor grid_sample(const Tensor& x, const Tensor& grid, const GridSampleOptions& options = {},
                   Where where = Where::current());
Tensor max_pool(const Tensor& x, const PerAxis& kernel, const PoolOptions& options = {},
                Where where = Where::current());
Tensor average_pool(const Tensor& x, const PerAxis& kernel, const AveragePoolOptions& options = {},
                    Where where = Where::current());
Tensor lp_pool(const Tensor& x, double p, const PerAxis& kernel, const LpPoolOptions& options = {},
               Where where = Where::current());
Tensor adaptive_max_pool(const Tensor& x, const PerAxis& sizes, Channels channels = Channels::first,
                         Where where = Where::current());
Tensor adaptive_average_pool(const Tensor& x, const PerAxis& sizes,
                             Channels channels = Channels::first, Where where = Where::current());
Tensor global_max_pool(const Tensor& x, Channels channels = Channels::first,
                       Where where = Where::current());
Tensor global_average_pool(const Tensor& x, Channels channels = Channels::first,
                           Where where = Where::current());

// autodiff/operations/linalg.h

Tensor tril(const Tensor& x, int diagonal = 0, Where where = Where::current());
Tensor triu(const Tensor& x, int diagonal = 0, Where where = Where::current());
Tensor cholesky(const Tensor& a, Where where = Where::current());
Tensor triangular_solve(const Tensor& a, const Tensor& b,
                        const TriangularSolveOptions& options = {}, Where where = Where::current());
Tensor solve(const Tensor& a, const Tensor& b, const SolveOptions& options = {},
             Where where = Where::current());
Tensor inverse(const Tensor& a, Where where = Where::current());
Tensor inv(const Tensor& a, Where where = Where::current());
Tensor det(const Tensor& a, Where where = Where::current());
Tensor logdet(const Tensor& a, Where where = Where::current());
TensorSlogdet slogdet(const Tensor& a, Where where = Where::current());
TensorQr qr(const Tensor& a, Where where = Where::current());
TensorEigh eigh(const Tensor& a, Where where = Where::current());
TensorSvd svd(const Tensor& a, Where where = Where::current());
Tensor svdvals(const Tensor& a, Where where = Where::current());
Tensor pinv(const Tensor& a, std::optional<double> tolerance = std::nullopt,
            Where where = Where::current());
Tensor lstsq(const Tensor& a, const Tensor& b, Where where = Where::current());
Tensor matrix_exp(const Tensor& a, Where where = Where::current());
Tensor matrix_power(const Tensor& a, std::int64_t n, Where where = Where::current());
Tensor matrix_norm(const Tensor& x, MatrixNorm kind = MatrixNorm::frobenius, bool keep_axes = false,
                   Where where = Where::current());

// autodiff/operations/loss.h

Tensor cross_entropy(const Tensor& logits, const Tensor& classes,
                     const ClassificationOptions& options = {}, Where where = Where::current());
Tensor nll(const Tensor& log_probabilities, const Tensor& classes,
           const ClassificationOptions& options = {}, Where where = Where::current());
Tensor mse(const Tensor& prediction, const Tensor& target, Reduction reduction = Reduction::mean,
           Where where = Where::current());
Tensor l1(const Tensor& prediction, const Tensor& target, Reduction reduction = Reduction::mean,
          Where where = Where::current());
Tensor huber(const Tensor& prediction, const Tensor& target, double delta = 1,
             Reduction reduction = Reduction::mean, Where where = Where::current());
Tensor smooth_l1_loss(const Tensor& prediction, const Tensor& target, double beta = 1,
                      Reduction reduction = Reduction::mean, Where where = Where::current());
Tensor binary_cross_entropy(const Tensor& probabilities, const Tensor& targets,
                            Reduction reduction = Reduction::mean, Where where = Where::current());
Tensor bce_with_logits(const Tensor& logits, const Tensor& targets,
                       Reduction reduction = Reduction::mean, Where where = Where::current());
Tensor nll_loss(const Tensor& log_probabilities, const Tensor& classes,
                const ClassificationOptions& options = {}, Where where = Where::current());
Tensor mse_loss(const Tensor& prediction, const Tensor& target,
                Reduction reduction = Reduction::mean, Where where = Where::current());
Tensor l1_loss(const Tensor& prediction, const Tensor& target,
               Reduction reduction = Reduction::mean, Where where = Where::current());
Tensor huber_loss(const Tensor& prediction, const Tensor& target, double delta = 1,
                  Reduction reduction = Reduction::mean, Where where = Where::current());
Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& targets,
                                        Reduction reduction = Reduction::mean,
                                        Where where = Where::current());
Tensor multilabel_soft_margin_loss(const Tensor& logits, const Tensor& targets,
                                   Reduction reduction = Reduction::mean,
                                   Where where = Where::current());
Tensor soft_margin_loss(const Tensor& scores, const Tensor& targets,
                        Reduction reduction = Reduction::mean, Where where = Where::current());
Tensor multi_margin_loss(const Tensor& scores, const Tensor& classes,
                         const MultiMarginOptions& options = {}, const Tensor& weight = {},
                         Where where = Where::current());
Tensor kl_div(const Tensor& log_probabilities, const Tensor& targets,
              const KlDivOptions& options = {}, Where where = Where::current());
Tensor gaussian_nll_loss(const Tensor& prediction, const Tensor& target, const Tensor& variance,
                         const GaussianNllOptions& options = {}, Where where = Where::current());
Tensor poisson_nll_loss(const Tensor& prediction, const Tensor& target,
                        const PoissonNllOptions& options = {}, Where where = Where::current());
Tensor weighted_mean(const Tensor& total, const Tensor& weight, Where where = Where::current());

// autodiff/operations/normalization.h

Tensor layer_norm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {},
                  double epsilon = 1e-5, Where where = Where::current());
Tensor rms_norm(const Tensor& x, const Tensor& weight = {}, double epsilon = 1e-6,
                Where where = Where::current());
Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& weight = {},
                  const Tensor& bias = {}, double epsilon = 1e-5, Where where = Where::current());
Tensor instance_norm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {},
                     double epsilon = 1e-5, Where where = Where::current());
TensorBatchNorm batch_norm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {},
                           double epsilon = 1e-5, Where where = Where::current());
Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& variance, const Tensor& weight,
                  const Tensor& bias, double epsilon = 1e-5, Where where = Where::current());
Tensor softmax(const Tensor& x, int axis = -1, Where where = Where::current());
Tensor log_softmax(const Tensor& x, int axis = -1, Where where = Where::current());
Tensor weight_norm(const Tensor& direction, const Tensor& magnitude, int axis = 0,
                   Where where = Where::current());
TensorSpectralNorm spectral_norm(const Tensor& weight, const Tensor& u,
                                 const SpectralNormOptions& options = {},
                                 Where where = Where::current());

// autodiff/operations/products.h

Tensor dot(const Tensor& a, const Tensor& b, Where where = Where::current());
Tensor outer(const Tensor& a, const Tensor& b, Where where = Where::current());
Tensor vecdot(const Tensor& a, const Tensor& b, int axis = -1, Where where = Where::current());
Tensor tensordot(const Tensor& a, const Tensor& b, int count = 2, Where where = Where::current());
Tensor tensordot(const Tensor& a, const Tensor& b, const Axes& axes_a, const Axes& axes_b,
                 Where where = Where::current());
Tensor multi_dot(std::span<const Tensor> factors, Where where = Where::current());
Tensor multi_dot(std::initializer_list<Tensor> factors, Where where = Where::current());
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              Where where = Where::current());
Tensor einsum(std::string_view equation, std::span<const Tensor> operands,
              Where where = Where::current());
Tensor einsum(std::string_view equation, std::initializer_list<Tensor> operands,
              Where where = Where::current());
Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options = {},
              Where where = Where::current());

// autodiff/operations/sequence.h

Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const TensorAttentionOptions& options = {},
                                    Where where = Where::current());
Tensor multi_head_attention(const Tensor& queries, const Tensor& keys, const Tensor& values,
                            const TensorAttentionParameters& parameters, std::int64_t heads,
                            const TensorAttentionOptions& options = {},
                            Where where = Where::current());
Tensor multi_head_attention(const Tensor& x, const TensorAttentionParameters& parameters,
                            std::int64_t heads, const TensorAttentionOptions& options = {},
                            Where where = Where::current());
Tensor rotary_embedding(const Tensor& x, const TensorRotaryOptions& options = {},
                        Where where = Where::current());
Tensor rnn_cell(const Tensor& x, const Tensor& h, const TensorCellParameters& parameters,
                CellActivation activation = CellActivation::tanh, Where where = Where::current());
TensorLstmState lstm_cell(const Tensor& x, const TensorLstmState& state,
                          const TensorCellParameters& parameters, Where where = Where::current());
Tensor gru_cell(const Tensor& x, const Tensor& h, const TensorCellParameters& parameters,
                Where where = Where::current());
TensorRecurrentOutput rnn(const Tensor& x, const Tensor& h, const TensorCellParameters& parameters,
                          CellActivation activation = CellActivation::tanh,
                          Where where = Where::current());
TensorRecurrentOutput gru(const Tensor& x, const Tensor& h, const TensorCellParameters& parameters,
                          Where where = Where::current());
TensorLstmOutput lstm(const Tensor& x, const TensorLstmState& state,
                      const TensorCellParameters& parameters, Where where = Where::current());

// autodiff/operations/sparse.h

Tensor sparse_matmul(const SparsePattern& pattern, const Tensor& values, const Tensor& x,
                     const SparseMatmulOptions& options = {}, Where where = Where::current());
Tensor sampled_matmul(const SparsePattern& pattern, const Tensor& a, const Tensor& b,
                      Where where = Where::current());

}  // namespace palimpsest
