// Written by tools/tensor_functions.py, as `./dev docs` does. Do not edit.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "autodiff/export.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/convolution.h"
#include "autodiff/operations/functions/activation.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/functions/binary_functions.h"
#include "autodiff/operations/functions/exponential.h"
#include "autodiff/operations/functions/trigonometric.h"
#include "autodiff/operations/image.h"
#include "autodiff/operations/index.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/linalg.h"
#include "autodiff/operations/loss.h"
#include "autodiff/operations/normalization.h"
#include "autodiff/operations/products.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/sparse.h"
#include "autodiff/operations/unary.h"
#include "autodiff/tensor.h"

/// The functions of `Var`, for tensors: computed at once, by the same kernels, without a tape that
/// users see. dtypes, broadcasting and errors are those of the functions of `Var`, which the named
/// headers document. Nothing is kept for derivatives, and no budget counts the memory. Functions
/// that compute nothing, such as `reshape`, return a tensor that shares the storage of their
/// argument.
namespace palimpsest PALIMPSEST_EXPORT {

// autodiff/operations/functions/arithmetic.h

Tensor negate(const Tensor& x, Where where = Where::current());
Tensor reciprocal(const Tensor& x, Where where = Where::current());
Tensor square(const Tensor& x, Where where = Where::current());
Tensor sqrt(const Tensor& x, Where where = Where::current());
Tensor rsqrt(const Tensor& x, Where where = Where::current());
Tensor pow(const Tensor& x, double exponent, Where where = Where::current());
Tensor abs(const Tensor& x, Where where = Where::current());
Tensor sign(const Tensor& x, Where where = Where::current());
Tensor floor(const Tensor& x, Where where = Where::current());
Tensor ceil(const Tensor& x, Where where = Where::current());
Tensor round(const Tensor& x, Where where = Where::current());
Tensor clamp(const Tensor& x, double low, double high, Where where = Where::current());

// autodiff/operations/functions/exponential.h

Tensor exp(const Tensor& x, Where where = Where::current());
Tensor expm1(const Tensor& x, Where where = Where::current());
Tensor log(const Tensor& x, Where where = Where::current());
Tensor log1p(const Tensor& x, Where where = Where::current());
Tensor erf(const Tensor& x, Where where = Where::current());

// autodiff/operations/functions/trigonometric.h

Tensor sin(const Tensor& x, Where where = Where::current());
Tensor cos(const Tensor& x, Where where = Where::current());
Tensor tan(const Tensor& x, Where where = Where::current());
Tensor asin(const Tensor& x, Where where = Where::current());
Tensor acos(const Tensor& x, Where where = Where::current());
Tensor atan(const Tensor& x, Where where = Where::current());
Tensor sinh(const Tensor& x, Where where = Where::current());
Tensor cosh(const Tensor& x, Where where = Where::current());
Tensor tanh(const Tensor& x, Where where = Where::current());
Tensor asinh(const Tensor& x, Where where = Where::current());
Tensor acosh(const Tensor& x, Where where = Where::current());
Tensor atanh(const Tensor& x, Where where = Where::current());

// autodiff/operations/functions/activation.h

Tensor relu(const Tensor& x, Where where = Where::current());
Tensor leaky_relu(const Tensor& x, double slope = 0.01, Where where = Where::current());
Tensor elu(const Tensor& x, double a = 1, Where where = Where::current());
Tensor sigmoid(const Tensor& x, Where where = Where::current());
Tensor softplus(const Tensor& x, Where where = Where::current());
Tensor gelu(const Tensor& x, Where where = Where::current());
Tensor gelu_tanh(const Tensor& x, Where where = Where::current());
Tensor silu(const Tensor& x, Where where = Where::current());
Tensor mish(const Tensor& x, Where where = Where::current());

// autodiff/operations/functions/binary_functions.h

Tensor add(const Tensor& a, const Tensor& b, Where where = Where::current());
Tensor subtract(const Tensor& a, const Tensor& b, Where where = Where::current());
Tensor multiply(const Tensor& a, const Tensor& b, Where where = Where::current());
Tensor divide(const Tensor& a, const Tensor& b, Where where = Where::current());
Tensor minimum(const Tensor& a, const Tensor& b, Where where = Where::current());
Tensor minimum(const Tensor& a, double b, Where where = Where::current());
Tensor minimum(double a, const Tensor& b, Where where = Where::current());
Tensor maximum(const Tensor& a, const Tensor& b, Where where = Where::current());
Tensor maximum(const Tensor& a, double b, Where where = Where::current());
Tensor maximum(double a, const Tensor& b, Where where = Where::current());
Tensor share(const Tensor& a, const Tensor& b, Where where = Where::current());
Tensor pow(const Tensor& a, const Tensor& b, Where where = Where::current());
Tensor pow(double a, const Tensor& b, Where where = Where::current());
Tensor atan2(const Tensor& a, const Tensor& b, Where where = Where::current());
Tensor greater(const Tensor& a, const Tensor& b, Where where = Where::current());
Tensor greater(const Tensor& a, double b, Where where = Where::current());
Tensor greater_equal(const Tensor& a, const Tensor& b, Where where = Where::current());
Tensor greater_equal(const Tensor& a, double b, Where where = Where::current());
Tensor less(const Tensor& a, const Tensor& b, Where where = Where::current());
Tensor less(const Tensor& a, double b, Where where = Where::current());
Tensor less_equal(const Tensor& a, const Tensor& b, Where where = Where::current());
Tensor less_equal(const Tensor& a, double b, Where where = Where::current());
Tensor equal(const Tensor& a, const Tensor& b, Where where = Where::current());
Tensor equal(const Tensor& a, double b, Where where = Where::current());
Tensor not_equal(const Tensor& a, const Tensor& b, Where where = Where::current());
Tensor not_equal(const Tensor& a, double b, Where where = Where::current());
Tensor greater(double a, const Tensor& b, Where where = Where::current());
Tensor greater_equal(double a, const Tensor& b, Where where = Where::current());
Tensor less(double a, const Tensor& b, Where where = Where::current());
Tensor less_equal(double a, const Tensor& b, Where where = Where::current());
Tensor equal(double a, const Tensor& b, Where where = Where::current());
Tensor not_equal(double a, const Tensor& b, Where where = Where::current());

// autodiff/operations/binary.h

Tensor sum_to(const Tensor& y, const Shape& shape, Where where = Where::current());
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b,
             Where line = Where::current());
Tensor where(const Tensor& condition, const Tensor& a, double b, Where line = Where::current());
Tensor where(const Tensor& condition, double a, const Tensor& b, Where line = Where::current());
Tensor where(const Tensor& condition, double a, double b, Where line = Where::current());
Tensor logical_and(const Tensor& a, const Tensor& b, Where where = Where::current());
Tensor logical_or(const Tensor& a, const Tensor& b, Where where = Where::current());
Tensor logical_not(const Tensor& x, Where where = Where::current());

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

// autodiff/operations/image.h

Tensor resize(const Tensor& x, const PerAxis& sizes, const ResizeOptions& options = {},
              Where where = Where::current());
Tensor upsample(const Tensor& x, const PerAxis& factors, const ResizeOptions& options = {},
                Where where = Where::current());
Tensor pixel_shuffle(const Tensor& x, std::int64_t r, Where where = Where::current());
Tensor pixel_unshuffle(const Tensor& x, std::int64_t r, Where where = Where::current());
Tensor grid_sample(const Tensor& x, const Tensor& grid, const GridSampleOptions& options = {},
                   Where where = Where::current());
Tensor max_pool(const Tensor& x, const PerAxis& kernel, const PoolOptions& options = {},
                Where where = Where::current());
Tensor average_pool(const Tensor& x, const PerAxis& kernel, const AveragePoolOptions& options = {},
                    Where where = Where::current());
Tensor adaptive_max_pool(const Tensor& x, const PerAxis& sizes, Channels channels = Channels::first,
                         Where where = Where::current());
Tensor adaptive_average_pool(const Tensor& x, const PerAxis& sizes,
                             Channels channels = Channels::first, Where where = Where::current());
Tensor global_max_pool(const Tensor& x, Channels channels = Channels::first,
                       Where where = Where::current());
Tensor global_average_pool(const Tensor& x, Channels channels = Channels::first,
                           Where where = Where::current());

// autodiff/operations/index.h

Tensor gather(const Tensor& x, int axis, const Tensor& index, Where where = Where::current());
Tensor scatter_add(const Tensor& x, int axis, const Tensor& index, std::int64_t size,
                   Where where = Where::current());
Tensor index_select(const Tensor& x, int axis, const Tensor& index, Where where = Where::current());
Tensor index_add(const Tensor& x, int axis, const Tensor& index, std::int64_t size,
                 Where where = Where::current());
Tensor embedding(const Tensor& table, const Tensor& ids, Where where = Where::current());
Tensor one_hot(const Tensor& ids, std::int64_t classes, DType dtype = DType::f32,
               Where where = Where::current());

// autodiff/operations/leaf.h

Tensor full_like(const Tensor& x, double value, Where where = Where::current());
Tensor cast(const Tensor& x, DType dtype, Where where = Where::current());

// autodiff/operations/linalg.h

/// `Slogdet` of tensors.
struct TensorSlogdet {
  Tensor sign;
  Tensor log_magnitude;
};
/// `Qr` of tensors.
struct TensorQr {
  Tensor q;
  Tensor r;
};
/// `Eigh` of tensors.
struct TensorEigh {
  Tensor values;
  Tensor vectors;
};
Tensor tril(const Tensor& x, int diagonal = 0, Where where = Where::current());
Tensor triu(const Tensor& x, int diagonal = 0, Where where = Where::current());
Tensor cholesky(const Tensor& a, Where where = Where::current());
Tensor triangular_solve(const Tensor& a, const Tensor& b,
                        const TriangularSolveOptions& options = {}, Where where = Where::current());
Tensor solve(const Tensor& a, const Tensor& b, const SolveOptions& options = {},
             Where where = Where::current());
Tensor inverse(const Tensor& a, Where where = Where::current());
Tensor det(const Tensor& a, Where where = Where::current());
Tensor logdet(const Tensor& a, Where where = Where::current());
TensorSlogdet slogdet(const Tensor& a, Where where = Where::current());
TensorQr qr(const Tensor& a, Where where = Where::current());
TensorEigh eigh(const Tensor& a, Where where = Where::current());

// autodiff/operations/loss.h

Tensor reduce_loss(const Tensor& losses, Reduction reduction, Where where = Where::current());
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
Tensor bce_with_logits(const Tensor& logits, const Tensor& targets,
                       Reduction reduction = Reduction::mean, Where where = Where::current());

// autodiff/operations/normalization.h

/// `BatchNorm` of tensors.
struct TensorBatchNorm {
  Tensor y;
  Tensor mean;
  Tensor variance;
};
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

// autodiff/operations/products.h

Tensor dot(const Tensor& a, const Tensor& b, Where where = Where::current());
Tensor outer(const Tensor& a, const Tensor& b, Where where = Where::current());
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              Where where = Where::current());
Tensor einsum(std::string_view equation, std::span<const Tensor> operands,
              Where where = Where::current());
Tensor einsum(std::string_view equation, std::initializer_list<Tensor> operands,
              Where where = Where::current());
Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options = {},
              Where where = Where::current());

// autodiff/operations/reduce.h

Tensor sum(const Tensor& x, const Axes& axes = {}, bool keep_axes = false,
           Where where = Where::current());
Tensor mean(const Tensor& x, const Axes& axes = {}, bool keep_axes = false,
            Where where = Where::current());
Tensor prod(const Tensor& x, const Axes& axes = {}, bool keep_axes = false,
            Where where = Where::current());
Tensor max(const Tensor& x, const Axes& axes = {}, bool keep_axes = false,
           Where where = Where::current());
Tensor min(const Tensor& x, const Axes& axes = {}, bool keep_axes = false,
           Where where = Where::current());
Tensor argmax(const Tensor& x, const Axes& axes = {}, bool keep_axes = false,
              Where where = Where::current());
Tensor argmin(const Tensor& x, const Axes& axes = {}, bool keep_axes = false,
              Where where = Where::current());
Tensor variance(const Tensor& x, const Axes& axes = {}, double correction = 1,
                bool keep_axes = false, Where where = Where::current());
Tensor standard_deviation(const Tensor& x, const Axes& axes = {}, double correction = 1,
                          bool keep_axes = false, Where where = Where::current());
Tensor norm(const Tensor& x, double p = 2, const Axes& axes = {}, bool keep_axes = false,
            Where where = Where::current());
Tensor logsumexp(const Tensor& x, const Axes& axes = {}, bool keep_axes = false,
                 Where where = Where::current());
Tensor cumsum(const Tensor& x, int axis, bool reverse = false, Where where = Where::current());
Tensor all(const Tensor& x, const Axes& axes = {}, bool keep_axes = false,
           Where where = Where::current());
Tensor any(const Tensor& x, const Axes& axes = {}, bool keep_axes = false,
           Where where = Where::current());

// autodiff/operations/shape.h

Tensor reshape(const Tensor& x, const Shape& shape, Where where = Where::current());
Tensor reshape(const Tensor& x, std::initializer_list<std::int64_t> sizes,
               Where where = Where::current());
Tensor flatten(const Tensor& x, int first = 0, int last = -1, Where where = Where::current());
Tensor squeeze(const Tensor& x, const Axes& axes = {}, Where where = Where::current());
Tensor unsqueeze(const Tensor& x, int axis, Where where = Where::current());
Tensor broadcast_to(const Tensor& x, const Shape& shape, Where where = Where::current());
Tensor permute(const Tensor& x, const Axes& axes, Where where = Where::current());
Tensor transpose(const Tensor& x, int a = -2, int b = -1, Where where = Where::current());
Tensor slice(const Tensor& x, std::span<const Slice> ranges, Where where = Where::current());
Tensor slice(const Tensor& x, std::initializer_list<Slice> ranges, Where where = Where::current());
Tensor slice(const Tensor& x, int axis, const Slice& range, Where where = Where::current());
Tensor select(const Tensor& x, int axis, std::int64_t place, Where where = Where::current());
Tensor flip(const Tensor& x, const Axes& axes = {}, Where where = Where::current());
Tensor roll(const Tensor& x, std::int64_t shift, int axis, Where where = Where::current());
Tensor pad(const Tensor& x, const std::vector<Padding>& widths, double value = 0,
           Where where = Where::current());
Tensor pad(const Tensor& x, const std::vector<Padding>& widths, PadMode mode,
           Where where = Where::current());
Tensor concat(std::span<const Tensor> parts, int axis, Where where = Where::current());
Tensor concat(std::initializer_list<Tensor> parts, int axis, Where where = Where::current());
Tensor stack(std::span<const Tensor> parts, int axis, Where where = Where::current());
Tensor stack(std::initializer_list<Tensor> parts, int axis, Where where = Where::current());
std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& sizes, int axis,
                          Where where = Where::current());
std::vector<Tensor> chunk(const Tensor& x, std::int64_t count, int axis,
                          Where where = Where::current());
Tensor tile(const Tensor& x, const std::vector<std::int64_t>& counts,
            Where where = Where::current());
Tensor repeat(const Tensor& x, std::int64_t count, int axis, Where where = Where::current());
Tensor repeat_interleave(const Tensor& x, std::int64_t count, int axis,
                         Where where = Where::current());

// autodiff/operations/sparse.h

Tensor sparse_matmul(const SparsePattern& pattern, const Tensor& values, const Tensor& x,
                     const SparseMatmulOptions& options = {}, Where where = Where::current());
Tensor sampled_matmul(const SparsePattern& pattern, const Tensor& a, const Tensor& b,
                      Where where = Where::current());

}  // namespace palimpsest
