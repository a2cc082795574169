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

// autodiff/operations/construction.h

Tensor zeros_like(const Tensor& x, Where where = Where::current());
Tensor ones_like(const Tensor& x, Where where = Where::current());
Tensor diagonal(const Tensor& x, int offset = 0, int a = 0, int b = 1,
                Where where = Where::current());
Tensor diag_embed(const Tensor& x, int offset = 0, int a = -2, int b = -1,
                  Where where = Where::current());
Tensor diag(const Tensor& x, int offset = 0, Where where = Where::current());
Tensor trace(const Tensor& x, int offset = 0, int a = 0, int b = 1, Where where = Where::current());
Tensor block_diag(std::span<const Tensor> blocks, Where where = Where::current());
Tensor block_diag(std::initializer_list<Tensor> blocks, Where where = Where::current());
std::vector<Tensor> meshgrid(std::span<const Tensor> vectors,
                             GridIndexing indexing = GridIndexing::ij,
                             Where where = Where::current());
std::vector<Tensor> meshgrid(std::initializer_list<Tensor> vectors,
                             GridIndexing indexing = GridIndexing::ij,
                             Where where = Where::current());
Tensor kron(const Tensor& a, const Tensor& b, Where where = Where::current());
Tensor cross(const Tensor& a, const Tensor& b, int axis = -1, Where where = Where::current());
Tensor movedim(const Tensor& x, int from, int to, Where where = Where::current());
Tensor swapaxes(const Tensor& x, int a, int b, Where where = Where::current());
Tensor unflatten(const Tensor& x, int axis, std::initializer_list<std::int64_t> sizes,
                 Where where = Where::current());
Tensor fliplr(const Tensor& x, Where where = Where::current());
Tensor flipud(const Tensor& x, Where where = Where::current());
Tensor rot90(const Tensor& x, int times = 1, int a = 0, int b = 1, Where where = Where::current());

// autodiff/operations/elementwise.h

Tensor isnan(const Tensor& x, Where where = Where::current());
Tensor isinf(const Tensor& x, Where where = Where::current());
Tensor isposinf(const Tensor& x, Where where = Where::current());
Tensor isneginf(const Tensor& x, Where where = Where::current());
Tensor isfinite(const Tensor& x, Where where = Where::current());
Tensor signbit(const Tensor& x, Where where = Where::current());
Tensor isclose(const Tensor& a, const Tensor& b, const CloseOptions& options = {},
               Where where = Where::current());
Tensor logical_xor(const Tensor& a, const Tensor& b, Where where = Where::current());
Tensor nan_to_num(const Tensor& x, const NanToNumOptions& options = {},
                  Where where = Where::current());
Tensor fmax(const Tensor& a, const Tensor& b, Where where = Where::current());
Tensor fmin(const Tensor& a, const Tensor& b, Where where = Where::current());
Tensor heaviside(const Tensor& x, const Tensor& value, Where where = Where::current());
Tensor clamp(const Tensor& x, const Tensor& low, const Tensor& high,
             Where where = Where::current());
Tensor clamp_min(const Tensor& x, double low, Where where = Where::current());
Tensor clamp_max(const Tensor& x, double high, Where where = Where::current());
Tensor frac(const Tensor& x, Where where = Where::current());
Tensor rad2deg(const Tensor& x, Where where = Where::current());
Tensor deg2rad(const Tensor& x, Where where = Where::current());
Tensor ldexp(const Tensor& x, const Tensor& exponent, Where where = Where::current());
Tensor floor_divide(const Tensor& a, const Tensor& b, Where where = Where::current());
Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, double value = 1,
               Where where = Where::current());
Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, double value = 1,
               Where where = Where::current());
Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight, Where where = Where::current());
Tensor lerp(const Tensor& a, const Tensor& b, double weight, Where where = Where::current());
Tensor logaddexp2(const Tensor& a, const Tensor& b, Where where = Where::current());
Tensor logit(const Tensor& x, double eps, Where where = Where::current());
Tensor logsigmoid(const Tensor& x, Where where = Where::current());
Tensor entr(const Tensor& x, Where where = Where::current());
Tensor ndtr(const Tensor& x, Where where = Where::current());
Tensor mvlgamma(const Tensor& x, int p, Where where = Where::current());
Tensor igamma(const Tensor& a, const Tensor& x, Where where = Where::current());
Tensor igammac(const Tensor& a, const Tensor& x, Where where = Where::current());
Tensor zeta(const Tensor& x, const Tensor& q, Where where = Where::current());
Tensor relu6(const Tensor& x, Where where = Where::current());
Tensor hardsigmoid(const Tensor& x, Where where = Where::current());
Tensor hardswish(const Tensor& x, Where where = Where::current());
Tensor celu(const Tensor& x, double a = 1, Where where = Where::current());
Tensor selu(const Tensor& x, Where where = Where::current());
Tensor softshrink(const Tensor& x, double bound = 0.5, Where where = Where::current());
Tensor hardshrink(const Tensor& x, double bound = 0.5, Where where = Where::current());
Tensor threshold(const Tensor& x, double bound, double value, Where where = Where::current());
Tensor prelu(const Tensor& x, const Tensor& weight, Where where = Where::current());
Tensor glu(const Tensor& x, int axis = -1, Where where = Where::current());

// autodiff/operations/index.h

Tensor gather(const Tensor& x, int axis, const Tensor& index, Where where = Where::current());
Tensor scatter_add(const Tensor& x, int axis, const Tensor& index, std::int64_t size,
                   Where where = Where::current());
Tensor scatter_add(const Tensor& x, int axis, const Tensor& index, const Tensor& source,
                   Where where = Where::current());
Tensor scatter(const Tensor& x, int axis, const Tensor& index, const Tensor& source,
               Where where = Where::current());
Tensor scatter(const Tensor& x, int axis, const Tensor& index, double value,
               Where where = Where::current());
Tensor scatter_reduce(const Tensor& x, int axis, const Tensor& index, const Tensor& source,
                      ScatterReduction reduction, bool include_self = true,
                      Where where = Where::current());
Tensor index_select(const Tensor& x, int axis, const Tensor& index, Where where = Where::current());
Tensor index_add(const Tensor& x, int axis, const Tensor& index, std::int64_t size,
                 Where where = Where::current());
Tensor index_add(const Tensor& x, int axis, const Tensor& index, const Tensor& source,
                 Where where = Where::current());
Tensor index_copy(const Tensor& x, int axis, const Tensor& index, const Tensor& source,
                  Where where = Where::current());
Tensor ravel_multi_index(std::span<const Tensor> indices, const Shape& sizes,
                         Where where = Where::current());
Tensor nonzero(const Tensor& x, std::optional<std::int64_t> count = {},
               Where where = Where::current());
Tensor masked_select(const Tensor& x, const Tensor& mask, std::optional<std::int64_t> count = {},
                     Where where = Where::current());
Tensor index(const Tensor& x, std::span<const Tensor> indices, Where where = Where::current());
Tensor index(const Tensor& x, std::initializer_list<Tensor> indices,
             Where where = Where::current());
Tensor index_put(const Tensor& x, std::span<const Tensor> indices, const Tensor& values,
                 bool accumulate = false, Where where = Where::current());
Tensor index_put(const Tensor& x, std::initializer_list<Tensor> indices, const Tensor& values,
                 bool accumulate = false, Where where = Where::current());
Tensor embedding(const Tensor& table, const Tensor& ids, Where where = Where::current());
Tensor one_hot(const Tensor& ids, std::int64_t classes, DType dtype = DType::f32,
               Where where = Where::current());

// autodiff/operations/leaf.h

Tensor full_like(const Tensor& x, double value, Where where = Where::current());
Tensor cast(const Tensor& x, DType dtype, Where where = Where::current());

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
Tensor cumprod(const Tensor& x, int axis, bool reverse = false, Where where = Where::current());
TensorValuesAndIndices cummax(const Tensor& x, int axis, bool reverse = false,
                              Where where = Where::current());
TensorValuesAndIndices cummin(const Tensor& x, int axis, bool reverse = false,
                              Where where = Where::current());
Tensor logcumsumexp(const Tensor& x, int axis, bool reverse = false,
                    Where where = Where::current());
Tensor linear_recurrence(const Tensor& a, const Tensor& b, int axis, bool reverse = false,
                         Where where = Where::current());
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

// autodiff/operations/sorting.h

TensorValuesAndIndices sort(const Tensor& x, int axis = -1, bool descending = false,
                            Where where = Where::current());
Tensor argsort(const Tensor& x, int axis = -1, bool descending = false,
               Where where = Where::current());
Tensor lexsort(const Tensor& keys, Where where = Where::current());
TensorValuesAndIndices topk(const Tensor& x, std::int64_t k, const TopkOptions& options = {},
                            Where where = Where::current());
TensorValuesAndIndices kthvalue(const Tensor& x, std::int64_t k, int axis = -1,
                                bool keep_axis = false, Where where = Where::current());
TensorValuesAndIndices median(const Tensor& x, int axis, bool keep_axis = false,
                              Where where = Where::current());
Tensor median(const Tensor& x, Where where = Where::current());
TensorValuesAndIndices nanmedian(const Tensor& x, int axis, bool keep_axis = false,
                                 Where where = Where::current());
Tensor nanmedian(const Tensor& x, Where where = Where::current());
Tensor quantile(const Tensor& x, double q, const QuantileOptions& options = {},
                Where where = Where::current());
Tensor quantile(const Tensor& x, std::span<const double> qs, const QuantileOptions& options = {},
                Where where = Where::current());
Tensor nanquantile(const Tensor& x, double q, const QuantileOptions& options = {},
                   Where where = Where::current());
Tensor searchsorted(const Tensor& sorted, const Tensor& values, bool right = false,
                    Where where = Where::current());
Tensor bucketize(const Tensor& values, const Tensor& boundaries, bool right = false,
                 Where where = Where::current());
Tensor bincount(const Tensor& x, const TensorBincountOptions& options = {},
                Where where = Where::current());
TensorHistogram histogram(const Tensor& x, std::int64_t bins,
                          const TensorHistogramOptions& options = {},
                          Where where = Where::current());
TensorHistogram histogram(const Tensor& x, const Tensor& edges,
                          const TensorHistogramOptions& options = {},
                          Where where = Where::current());
Tensor histc(const Tensor& x, std::int64_t bins = 100, double low = 0, double high = 0,
             Where where = Where::current());
TensorUnique unique(const Tensor& x, const UniqueOptions& options = {},
                    Where where = Where::current());
TensorUnique unique_consecutive(const Tensor& x, const UniqueOptions& options = {},
                                Where where = Where::current());

}  // namespace palimpsest
