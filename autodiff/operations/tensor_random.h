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

// autodiff/operations/random.h

Tensor uniform(RandomSeed seed, const Shape& shape, double low = 0, double high = 1,
               DType dtype = DType::f32, Where where = Where::current());
Tensor normal(RandomSeed seed, const Shape& shape, double mean = 0, double deviation = 1,
              DType dtype = DType::f32, Where where = Where::current());
Tensor normal(RandomSeed seed, const Tensor& mean, const Tensor& deviation,
              Where where = Where::current());
Tensor truncated_normal(RandomSeed seed, const Shape& shape, double mean = 0, double deviation = 1,
                        double low = -2, double high = 2, DType dtype = DType::f32,
                        Where where = Where::current());
Tensor truncated_normal(RandomSeed seed, const Tensor& mean, const Tensor& deviation, double low,
                        double high, Where where = Where::current());
Tensor bernoulli(RandomSeed seed, const Shape& shape, double p, DType dtype = DType::f32,
                 Where where = Where::current());
Tensor bernoulli(RandomSeed seed, const Tensor& p, DType dtype = DType::f32,
                 Where where = Where::current());
Tensor randint(RandomSeed seed, std::int64_t low, std::int64_t high, const Shape& shape,
               DType dtype = DType::i64, Where where = Where::current());
Tensor exponential(RandomSeed seed, const Shape& shape, double rate = 1, DType dtype = DType::f32,
                   Where where = Where::current());
Tensor laplace(RandomSeed seed, const Shape& shape, double location = 0, double scale = 1,
               DType dtype = DType::f32, Where where = Where::current());
Tensor gumbel(RandomSeed seed, const Shape& shape, double location = 0, double scale = 1,
              DType dtype = DType::f32, Where where = Where::current());
Tensor cauchy(RandomSeed seed, const Shape& shape, double location = 0, double scale = 1,
              DType dtype = DType::f32, Where where = Where::current());
Tensor gamma(RandomSeed seed, const Tensor& concentration, Where where = Where::current());
Tensor gamma(RandomSeed seed, const Shape& shape, double concentration, double scale = 1,
             DType dtype = DType::f32, Where where = Where::current());
Tensor log_gamma_variate(RandomSeed seed, const Tensor& concentration,
                         Where where = Where::current());
Tensor beta(RandomSeed seed, const Tensor& a, const Tensor& b, Where where = Where::current());
Tensor dirichlet(RandomSeed seed, const Tensor& concentration, Where where = Where::current());
Tensor poisson(RandomSeed seed, const Tensor& rate, Where where = Where::current());
Tensor categorical(RandomSeed seed, const Tensor& logits, int axis = -1,
                   Where where = Where::current());
Tensor multinomial(RandomSeed seed, const Tensor& weights, std::int64_t count,
                   bool replacement = false, Where where = Where::current());
Tensor randperm(RandomSeed seed, std::int64_t n, DType dtype = DType::i64,
                Where where = Where::current());
Tensor permutation(RandomSeed seed, const Tensor& x, int axis = 0, Where where = Where::current());
Tensor dropout(RandomSeed seed, const Tensor& x, double p, bool training = true,
               Where where = Where::current());

}  // namespace palimpsest
