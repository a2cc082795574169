#pragma once

#include <cstdint>

namespace palimpsest {

/// A run of adjacent elements with a common mean and scale. x̂ = (x − mean)·scale + offset, where
/// the offset corrects the rounding of the mean. Weight and bias are read at i·step with step 0 or
/// 1; they may be null.
template <class T>
struct NormalizeRun {
  std::int64_t n = 0;
  const T* x = nullptr;
  const T* dy = nullptr;
  T* out = nullptr;
  T mean = 0;
  T scale = 1;
  T offset = 0;
  const T* weight = nullptr;
  const T* bias = nullptr;
  std::int64_t step = 1;
};

/// The inner loops of normalization. Sums are accumulated in f64.
template <class T>
struct NormalizeKernels {
  /// Σ (x − pivot): no rounding error for elements near the pivot.
  double (*deviations)(const T* x, std::int64_t n, T pivot);
  /// Σ (x − mean)²
  double (*squares)(const T* x, std::int64_t n, T mean);
  /// out = x̂·weight + bias
  void (*normalize)(const NormalizeRun<T>&);
  /// Adds Σ dy·weight and Σ dy·weight·x̂ to `sums`.
  void (*adjoint_sums)(const NormalizeRun<T>&, double* sums);
  /// out = scale·(dy·weight − a − x̂·b)
  void (*adjoint)(const NormalizeRun<T>&, T a, T b);
  /// Adds dy·x̂ and dy to the elements i·step of `dweight` and `dbias`.
  void (*channel_sums)(const NormalizeRun<T>&, double* dweight, double* dbias);
};

}  // namespace palimpsest
