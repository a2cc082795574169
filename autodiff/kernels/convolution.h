#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "autodiff/bytes.h"

namespace palimpsest {

struct EpilogueKernel;

/// Sizes of the trilinear form Σ y·(w ∗ x), whose partial derivatives are the convolution and its
/// two adjoints. x is batch × channels × input, y is batch × results × output, w is
/// results × channels/groups × kernel. There are always three spatial axes; missing leading ones
/// have size 1, stride 1 and no padding. Output q reads input q·stride − padding + tap·dilation.
struct ConvolutionGeometry {
  using Sizes = std::array<std::int64_t, 3>;

  std::int64_t batch = 0;
  std::int64_t channels = 0;
  std::int64_t results = 0;
  std::int64_t groups = 1;
  Sizes input{1, 1, 1};
  Sizes output{1, 1, 1};
  Sizes kernel{1, 1, 1};
  Sizes stride{1, 1, 1};
  Sizes padding{0, 0, 0};
  Sizes dilation{1, 1, 1};

  std::int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  std::int64_t input_size() const { return input[0] * input[1] * input[2]; }
  std::int64_t output_size() const { return output[0] * output[1] * output[2]; }
};

// The kernels run in parallel in the caller's arena. The partition of the work depends on the
// geometry only. T is float or double. `workspace` holds as many bytes as the function's
// `…_workspace` returns for the same number of threads, aligned to 64. That is some 256 KiB of
// window values and 128 KiB of results per thread for any sizes, provided that a row of windows
// fits.

/// y = w ∗ x + bias; `bias` holds `results` numbers or is null. `finish` is applied to y.
template <class T>
void convolve(const ConvolutionGeometry& geometry, const T* x, const T* weight, const T* bias, T* y,
              std::span<std::byte> workspace, int threads, const EpilogueKernel* finish = nullptr);
template <class T>
Bytes convolve_workspace(const ConvolutionGeometry& geometry, int threads);

/// x = adjoint of x ↦ w ∗ x applied to y, + bias; `bias` holds `channels` numbers or is null.
/// Computes one product for each residue of the input positions modulo the strides, so no element
/// is accumulated repeatedly.
template <class T>
void convolve_transposed(const ConvolutionGeometry& geometry, const T* y, const T* weight,
                         const T* bias, T* x, std::span<std::byte> workspace, int threads,
                         const EpilogueKernel* finish = nullptr);
template <class T>
Bytes convolve_transposed_workspace(const ConvolutionGeometry& geometry, int threads);

/// w = adjoint of w ↦ w ∗ x applied to y. The batch is cut into a fixed number of slices. Their
/// sums, at most 1 MiB or a single one, are added in order.
template <class T>
void convolve_weight(const ConvolutionGeometry& geometry, const T* x, const T* y, T* weight,
                     std::span<std::byte> workspace, int threads);
template <class T>
Bytes convolve_weight_workspace(const ConvolutionGeometry& geometry, int threads);

}  // namespace palimpsest
