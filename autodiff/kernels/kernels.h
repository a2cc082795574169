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
#include "autodiff/kernels/sort.h"

namespace palimpsest {

/// y[i] = f(x[i]; parameters) for i in [0, n).
template <class T>
using UnaryKernel = void (*)(const T* x, T* y, std::int64_t n, const double* parameters);

/// dx[i] = dy[i]·f'(z[i]; parameters) for i in [0, n); z is x or y.
template <class T>
using AdjointKernel = void (*)(const T* dy, const T* z, T* dx, std::int64_t n,
                               const double* parameters);

/// y[i] = f(a[i·a_step], b[i·b_step]) for i in [0, n); steps are 0 or 1.
template <class T, class Y>
using BinaryKernel = void (*)(const T* a, std::int64_t a_step, const T* b, std::int64_t b_step,
                              Y* y, std::int64_t n);

/// Two or three fused arithmetic operations, each rounded: y[i] = second(first(a[i·steps[0]],
/// b[i·steps[1]]), c[i·steps[2]]), and optionally third of that and d[i·steps[3]], for i in [0, n).
/// `inputs` are a, b, c and d; steps are 0 or 1. With two operations, one of the first two steps
/// must be 1. With three, all steps must be 1 except those of multipliers.
using ArithmeticKernel = void (*)(const std::byte* const* inputs, const std::int64_t* steps,
                                  std::byte* y, std::int64_t n);

/// Conversions between f32 and a 16-bit type, with the same results as `Half`'s own conversions.
template <class Half>
struct HalfKernels {
  void (*widen)(const Half* x, float* y, std::int64_t n) = nullptr;
  void (*narrow)(const float* x, Half* y, std::int64_t n) = nullptr;
  /// Narrows and widens again, in place.
  void (*round)(float* x, std::int64_t n) = nullptr;
};

/// One matrix product with given blocking and workspace; see kernels/gemm.cpp.
template <class T>
struct BlockedGemm {
  Gemm<T> product;
  bool transpose_c = false;  ///< c holds the transpose of the result
  std::int64_t columns_block = 0;
  std::int64_t depth_block = 0;
  T* packed_a = nullptr;         ///< tile_rows rows of depth_block elements
  T* packed_b = nullptr;         ///< null if nothing is packed
  std::int64_t packed_size = 0;  ///< elements at packed_b
};
/// A product that needs neither tiles nor workspace: C = op(A)·op(B), plus the addend unless that
/// is null. The addresses in `product` are not used.
template <class T>
using SmallGemm = void (*)(const Gemm<T>& product, const T* a, const T* b, const T* addend, T* c);
template <class T>
struct SmallGemms {
  SmallGemm<T> outer;   ///< m, n > 1 and k = 1; a transposed B has no gaps; computes α·op(A)·op(B)
  SmallGemm<T> row;     ///< one row; B is not transposed
  SmallGemm<T> dots;    ///< one row; B is transposed; the depth is at most `longest_dot`
  SmallGemm<T> matrix;  ///< m, n > 1; a transposed B has at most `small_matrix_elements`
};
inline constexpr std::int64_t longest_dot = 512;
inline constexpr std::int64_t small_matrix_elements = 1024;
/// A multiple of the elements of any vector register. Products are divided at its multiples.
inline constexpr std::int64_t vector_size = 16;
/// The kernel for a product, or null if it is not small. The product's addresses are not used.
template <class T>
SmallGemm<T> small_gemm(const Gemm<T>& product);

/// The blocking of a product with elements, without workspace. Sizes and transposes determine it,
/// so the addresses of the operands may be set later; `transpose_c` exchanges a and b.
template <class T>
BlockedGemm<T> blocked(const Gemm<T>& product);
/// Computes it on the calling thread, with the workspace of `gemm_serial`.
template <class T>
void run_blocked(BlockedGemm<T>& call, std::byte* workspace);

/// The inner loops compiled for one instruction-set level. Arrays are indexed by a function's
/// position in its list.
struct Kernels {
  const char* level = nullptr;
  /// External library that computes the f32 products instead of these kernels, or null.
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
  /// Two operations if the third is `none`. Returns null if the first or second is `none`, or the
  /// first is `subtract_from`.
  ArithmeticKernel (*arithmetic_f32)(ArithmeticStep first, ArithmeticStep second,
                                     ArithmeticStep third);
  ArithmeticKernel (*arithmetic_f64)(ArithmeticStep first, ArithmeticStep second,
                                     ArithmeticStep third);
  /// For f32 arrays, with each operation rounded to the 16-bit type. Null for three operations,
  /// which would save little.
  ArithmeticKernel (*arithmetic_bf16)(ArithmeticStep first, ArithmeticStep second,
                                      ArithmeticStep third);
  ArithmeticKernel (*arithmetic_f16)(ArithmeticStep first, ArithmeticStep second,
                                     ArithmeticStep third);
  HalfKernels<BFloat16> bf16;
  HalfKernels<Float16> f16;
  void (*gemm_f32)(const BlockedGemm<float>&);
  void (*gemm_f64)(const BlockedGemm<double>&);
  SmallGemms<float> small_gemms_f32;
  SmallGemms<double> small_gemms_f64;
  void (*gemm_bf16)(const BlockedGemm<BFloat16>&);  ///< null if the level has none
  SoftmaxKernels<float> softmax_f32;
  SoftmaxKernels<double> softmax_f64;
  ConvolutionKernels<float> convolution_f32;
  ConvolutionKernels<double> convolution_f64;
  NormalizeKernels<float> normalize_f32;
  NormalizeKernels<double> normalize_f64;
  PoolKernels<float> pool_f32;
  PoolKernels<double> pool_f64;
  SortKernel<NarrowEntry> sort_narrow;
  SortKernel<WideEntry> sort_wide;

  template <class T>
  const UnaryKernel<T>* unary() const {
    if constexpr (sizeof(T) == 8)
      return unary_f64;
    else
      return unary_f32;
  }
  template <class T>
  const SmallGemms<T>& small_gemms() const {
    if constexpr (sizeof(T) == 8)
      return small_gemms_f64;
    else
      return small_gemms_f32;
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

/// The kernels of the best level that this build and this processor support. The environment
/// variable PALIMPSEST_KERNELS (base, v3, v4, v4_bf16) sets the highest level allowed. Throws
/// `ArgumentError` for another value, `EnvironmentError` if no level remains.
const Kernels& kernels();

}  // namespace palimpsest
