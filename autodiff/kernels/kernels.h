#pragma once

#include <cstddef>
#include <cstdint>

#include "autodiff/arithmetic.h"
#include "autodiff/dtype.h"
#include "autodiff/kernels/convolution_kernels.h"
#include "autodiff/kernels/gemm.h"
#include "autodiff/kernels/normalize.h"
#include "autodiff/kernels/pool.h"
#include "autodiff/kernels/softmax.h"

namespace palimpsest {

/// y[i] = f(x[i]; parameters) for i in [0, n).
template <class T>
using UnaryKernel = void (*)(const T* x, T* y, std::int64_t n, const double* parameters);

/// dx[i] = dy[i]·f'(z[i]; parameters) for i in [0, n), z being x or y.
template <class T>
using AdjointKernel = void (*)(const T* dy, const T* z, T* dx, std::int64_t n,
                               const double* parameters);

/// y[i] = f(a[i·a_step], b[i·b_step]) for i in [0, n), steps 0 or 1.
template <class T, class Y>
using BinaryKernel = void (*)(const T* a, std::int64_t a_step, const T* b, std::int64_t b_step,
                              Y* y, std::int64_t n);

/// Two or three steps of arithmetic, each rounded: y[i] = second(first(a[i·steps[0]],
/// b[i·steps[1]]), c[i·steps[2]]), or third of that and d[i·steps[3]], for i in [0, n), steps 0 or
/// 1. `inputs` are a, b, c and d. Of two steps, one of the first two is 1; of three, all are but
/// those of what is multiplied by.
using ArithmeticKernel = void (*)(const std::byte* const* inputs, const std::int64_t* steps,
                                  std::byte* y, std::int64_t n);

/// Numbers as f32 and as a 16-bit type, each converted as `Half` converts it by itself.
template <class Half>
struct HalfKernels {
  void (*widen)(const Half* x, float* y, std::int64_t n) = nullptr;
  void (*narrow)(const float* x, Half* y, std::int64_t n) = nullptr;
  /// In place: what narrowing and widening again makes of a number.
  void (*round)(float* x, std::int64_t n) = nullptr;
};

/// One matrix product with the blocking and workspace given; see kernels/gemm.cpp.
template <class T>
struct BlockedGemm {
  Gemm<T> product;
  bool transpose_c = false;  ///< what is computed is the transpose of what c holds
  std::int64_t columns_block = 0;
  std::int64_t depth_block = 0;
  T* packed_a = nullptr;         ///< of as many rows as a tile has, depth_block each
  T* packed_b = nullptr;         ///< null where nothing is to be packed
  std::int64_t packed_size = 0;  ///< elements at packed_b
};

/// The inner loops compiled for one instruction-set level; arrays are indexed by the position of a
/// function in its list.
struct Kernels {
  const char* level = nullptr;
  /// Another library that makes the products of f32 in place of these kernels, or null.
  const char* product_library = nullptr;
  const UnaryKernel<float>* unary_f32;
  const UnaryKernel<double>* unary_f64;
  const AdjointKernel<float>* adjoint_f32;
  const AdjointKernel<double>* adjoint_f64;
  const BinaryKernel<float, float>* binary_f32;
  const BinaryKernel<double, double>* binary_f64;
  const BinaryKernel<std::int64_t, std::int64_t>* binary_i64;
  const BinaryKernel<std::int32_t, std::int32_t>* binary_i32;
  const BinaryKernel<float, bool>* compare_f32;
  const BinaryKernel<double, bool>* compare_f64;
  const BinaryKernel<std::int64_t, bool>* compare_i64;
  const BinaryKernel<std::int32_t, bool>* compare_i32;
  /// Two steps where the third is `none`; null where one before it is, or the first is
  /// `subtract_from`.
  ArithmeticKernel (*arithmetic_f32)(ArithmeticStep first, ArithmeticStep second,
                                     ArithmeticStep third);
  ArithmeticKernel (*arithmetic_f64)(ArithmeticStep first, ArithmeticStep second,
                                     ArithmeticStep third);
  /// The same of f32, each step rounded to the 16-bit type; null for three, which saves little.
  ArithmeticKernel (*arithmetic_bf16)(ArithmeticStep first, ArithmeticStep second,
                                      ArithmeticStep third);
  ArithmeticKernel (*arithmetic_f16)(ArithmeticStep first, ArithmeticStep second,
                                     ArithmeticStep third);
  HalfKernels<BFloat16> bf16;
  HalfKernels<Float16> f16;
  void (*gemm_f32)(const BlockedGemm<float>&);
  void (*gemm_f64)(const BlockedGemm<double>&);
  void (*gemm_bf16)(const BlockedGemm<BFloat16>&);  ///< null where the level has none
  SoftmaxKernels<float> softmax_f32;
  SoftmaxKernels<double> softmax_f64;
  ConvolutionKernels<float> convolution_f32;
  ConvolutionKernels<double> convolution_f64;
  NormalizeKernels<float> normalize_f32;
  NormalizeKernels<double> normalize_f64;
  PoolKernels<float> pool_f32;
  PoolKernels<double> pool_f64;

  template <class T>
  const UnaryKernel<T>* unary() const {
    if constexpr (sizeof(T) == 8)
      return unary_f64;
    else
      return unary_f32;
  }
  template <class T>
  const SoftmaxKernels<T>& softmax() const {
    if constexpr (sizeof(T) == 8)
      return softmax_f64;
    else
      return softmax_f32;
  }
  template <class T>
  const AdjointKernel<T>* adjoint() const {
    if constexpr (sizeof(T) == 8)
      return adjoint_f64;
    else
      return adjoint_f32;
  }
  template <class T>
  const ConvolutionKernels<T>& convolution() const {
    if constexpr (sizeof(T) == 8)
      return convolution_f64;
    else
      return convolution_f32;
  }
  template <class T>
  const NormalizeKernels<T>& normalize() const {
    if constexpr (sizeof(T) == 8)
      return normalize_f64;
    else
      return normalize_f32;
  }
  template <class Half>
  const HalfKernels<Half>& half() const {
    if constexpr (std::is_same_v<Half, BFloat16>)
      return bf16;
    else
      return f16;
  }
  template <class T>
  const PoolKernels<T>& pool() const {
    if constexpr (sizeof(T) == 8)
      return pool_f64;
    else
      return pool_f32;
  }
};

/// The kernels of the best level that this build and this processor have. The environment variable
/// PALIMPSEST_KERNELS (base, v3, v4, v4_bf16) sets the highest level allowed. Throws
/// `ArgumentError` where it is something else, `EnvironmentError` where no level is left.
const Kernels& kernels();

}  // namespace palimpsest
