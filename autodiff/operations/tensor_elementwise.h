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
Tensor hardtanh(const Tensor& x, double low = -1, double high = 1, Where where = Where::current());
Tensor softsign(const Tensor& x, Where where = Where::current());
Tensor tanhshrink(const Tensor& x, Where where = Where::current());

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
Tensor trunc(const Tensor& x, Where where = Where::current());
Tensor clamp(const Tensor& x, double low, double high, Where where = Where::current());

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
Tensor hypot(const Tensor& a, const Tensor& b, Where where = Where::current());
Tensor logaddexp(const Tensor& a, const Tensor& b, Where where = Where::current());
Tensor fmod(const Tensor& a, const Tensor& b, Where where = Where::current());
Tensor fmod(const Tensor& a, double b, Where where = Where::current());
Tensor remainder(const Tensor& a, const Tensor& b, Where where = Where::current());
Tensor remainder(const Tensor& a, double b, Where where = Where::current());
Tensor copysign(const Tensor& a, const Tensor& b, Where where = Where::current());
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

// autodiff/operations/functions/exponential.h

Tensor exp(const Tensor& x, Where where = Where::current());
Tensor exp2(const Tensor& x, Where where = Where::current());
Tensor expm1(const Tensor& x, Where where = Where::current());
Tensor log(const Tensor& x, Where where = Where::current());
Tensor log2(const Tensor& x, Where where = Where::current());
Tensor log10(const Tensor& x, Where where = Where::current());
Tensor log1p(const Tensor& x, Where where = Where::current());
Tensor erf(const Tensor& x, Where where = Where::current());
Tensor erfc(const Tensor& x, Where where = Where::current());
Tensor logit(const Tensor& x, Where where = Where::current());

// autodiff/operations/functions/special.h

Tensor lgamma(const Tensor& x, Where where = Where::current());
Tensor digamma(const Tensor& x, Where where = Where::current());
Tensor polygamma(int n, const Tensor& x, Where where = Where::current());
Tensor erfinv(const Tensor& x, Where where = Where::current());
Tensor bessel_i(int n, bool scaled, const Tensor& x, Where where = Where::current());
Tensor i0(const Tensor& x, Where where = Where::current());
Tensor i1(const Tensor& x, Where where = Where::current());
Tensor i0e(const Tensor& x, Where where = Where::current());
Tensor i1e(const Tensor& x, Where where = Where::current());
Tensor spherical_bessel_j(int n, bool times_pi, const Tensor& x, Where where = Where::current());
Tensor sinc(const Tensor& x, Where where = Where::current());

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

// autodiff/operations/ctc.h

Tensor ctc_loss(const Tensor& log_probabilities, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, const CtcOptions& options = {},
                Where where = Where::current());

// autodiff/operations/distance.h

Tensor cosine_similarity(const Tensor& a, const Tensor& b, int axis = 1, double eps = 1e-8,
                         Where where = Where::current());
Tensor pairwise_distance(const Tensor& a, const Tensor& b, const DistanceOptions& options = {},
                         Where where = Where::current());
Tensor cdist(const Tensor& a, const Tensor& b, double p = 2, Where where = Where::current());
Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& targets,
                             double margin = 0, Reduction reduction = Reduction::mean,
                             Where where = Where::current());
Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& targets,
                           double margin = 0, Reduction reduction = Reduction::mean,
                           Where where = Where::current());
Tensor hinge_embedding_loss(const Tensor& x, const Tensor& targets, double margin = 1,
                            Reduction reduction = Reduction::mean, Where where = Where::current());
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletOptions& options = {}, Where where = Where::current());

// autodiff/operations/loss_reduction.h

Tensor reduce_loss(const Tensor& losses, Reduction reduction, Where where = Where::current());

}  // namespace palimpsest
