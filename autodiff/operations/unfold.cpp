#include <algorithm>
#include <array>
#include <string>

#include "autodiff/gradient.h"
#include "autodiff/operations/convolution.h"
#include "autodiff/operations/fold.h"
#include "autodiff/operations/places.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/shape.h"
#include "autodiff/parallel.h"
#include "autodiff/tape.h"

namespace palimpsest {
namespace {

/// One spatial axis of patches.
struct PatchAxis {
  std::int64_t input = 1;
  std::int64_t output = 1;  ///< number of patches
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;

  bool operator==(const PatchAxis&) const = default;

  /// Input position of element `tap` of patch 0.
  std::int64_t offset(std::int64_t tap) const { return tap * dilation - padding; }
  /// The patches [first, last) whose element `tap` lies inside the input.
  std::int64_t first(std::int64_t tap) const {
    const std::int64_t at = offset(tap);
    return std::min(output, at >= 0 ? 0 : divide_up(-at, stride));
  }
  std::int64_t last(std::int64_t tap) const {
    const std::int64_t room = input - offset(tap);
    return std::clamp<std::int64_t>(room <= 0 ? 0 : divide_up(room, stride), first(tap), output);
  }
};

struct PatchAttributes {
  std::array<PatchAxis, 3> axes;

  bool operator==(const PatchAttributes&) const = default;

  std::int64_t input_size() const { return axes[0].input * axes[1].input * axes[2].input; }
  std::int64_t kernel_size() const { return axes[0].kernel * axes[1].kernel * axes[2].kernel; }
  std::int64_t output_size() const { return axes[0].output * axes[1].output * axes[2].output; }
};

/// Calls `f(at, to, n)` for the rows of the plane that element `tap` of the patches covers: n
/// elements, every `stride`-th from `at` on, that belong to the patches from `to` on.
template <class F>
void for_patch_rows(const PatchAttributes& patches, std::int64_t tap, F f) {
  const auto& [a, b, c] = patches.axes;
  const std::int64_t k = tap % c.kernel;
  const std::int64_t j = tap / c.kernel % b.kernel;
  const std::int64_t i = tap / (c.kernel * b.kernel);
  const std::int64_t first = c.first(k);
  const std::int64_t n = c.last(k) - first;
  if (n == 0) return;
  for (std::int64_t p = a.first(i); p < a.last(i); ++p) {
    for (std::int64_t q = b.first(j); q < b.last(j); ++q) {
      const std::int64_t row = (p * a.stride + a.offset(i)) * b.input + q * b.stride + b.offset(j);
      f(row * c.input + first * c.stride + c.offset(k), (p * b.output + q) * c.output + first, n);
    }
  }
}

void compute_unfold(const KernelCall& call) {
  const auto& patches = call.attributes.as<PatchAttributes>();
  const std::int64_t taps = patches.kernel_size();
  const std::int64_t size = patches.output_size();
  const std::int64_t stride = patches.axes[2].stride;
  visit_size(call.output().dtype(), [&]<class T>(T) {
    const T* const x = call.input().as<T>();
    T* const y = call.output().as<T>();
    const std::int64_t rows = size == 0 ? 0 : call.output().elements() / size;
    parallel_chunks(rows, grain_for(static_cast<double>(size)), [&](auto begin, auto end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const T* const plane = x + row / taps * patches.input_size();
        T* const line = y + row * size;
        std::int64_t done = 0;  // zeros between the runs are those of the padding
        for_patch_rows(patches, row % taps, [&](std::int64_t at, std::int64_t to, std::int64_t n) {
          std::fill(line + done, line + to, T{});
          if (stride == 1) {
            std::copy_n(plane + at, n, line + to);
          } else {
            for (std::int64_t i = 0; i < n; ++i) line[to + i] = plane[at + i * stride];
          }
          done = to + n;
        });
        std::fill(line + done, line + size, T{});
      }
    });
  });
}

void compute_fold(const KernelCall& call) {
  const auto& patches = call.attributes.as<PatchAttributes>();
  const std::int64_t taps = patches.kernel_size();
  const std::int64_t size = patches.output_size();
  const std::int64_t stride = patches.axes[2].stride;
  const std::int64_t pixels = patches.input_size();
  visit_numeric(call.output().dtype(), [&]<class T>(T) {
    const std::int64_t planes = pixels == 0 ? 0 : call.output().elements() / pixels;
    const auto cost = static_cast<double>(pixels + taps * size);
    parallel_chunks(planes, grain_for(cost), [&](auto begin, auto end) {
      for (std::int64_t plane = begin; plane < end; ++plane) {
        T* const y = call.output().as<T>() + plane * pixels;
        std::fill_n(y, pixels, T{});
        for (std::int64_t tap = 0; tap < taps; ++tap) {
          const T* const line = call.input().as<T>() + (plane * taps + tap) * size;
          for_patch_rows(patches, tap, [&](std::int64_t at, std::int64_t to, std::int64_t n) {
            if (stride == 1) {
              for (std::int64_t i = 0; i < n; ++i) {
                y[at + i] = Summing::combine(y[at + i], line[to + i]);
              }
            } else {
              for (std::int64_t i = 0; i < n; ++i) {
                T& sum = y[at + i * stride];
                sum = Summing::combine(sum, line[to + i]);
              }
            }
          });
        }
      }
    });
  });
}

Var record_patches(const Operation& operation, const Var& x, const Shape& shape,
                   const PatchAttributes& patches, const Where& where) {
  const ValueType type{shape, x.dtype()};
  return x.tape().record(operation, {&x, 1}, {&type, 1}, patches, where);
}

extern const Operation fold_operation;

const Operation unfold_operation{
    .name = "unfold",
    .formula = "y(c·t, q) = x(c, q·s − p + t·d), 0 outside; x̄ = fold(ȳ)",
    .summary = "patches of an image as columns (im2col)",
    .compute = compute_unfold,
    .vjp =
        [](const Pullback& p) {
          p.set(0, record_patches(fold_operation, p.adjoint(), p.input().shape(),
                                  p.attributes().as<PatchAttributes>(), p.where()));
        },
    .half = HalfSupport::native,
    .mixed = MixedPrecision::follows,
};

const Operation fold_operation{
    .name = "fold",
    .formula = "y(c, h) = Σ x(c·t, q) over q·s − p + t·d = h; x̄ = unfold(ȳ)",
    .summary = "sum of patches given as columns (col2im); adjoint of unfold",
    .compute = compute_fold,
    .vjp =
        [](const Pullback& p) {
          p.set(0, record_patches(unfold_operation, p.adjoint(), p.input().shape(),
                                  p.attributes().as<PatchAttributes>(), p.where()));
        },
    .cost =
        [](const NodeView& node) {
          return Cost{static_cast<double>(node.input(0).shape.elements()), bytes_moved(node)};
        },
    .mixed = MixedPrecision::follows,
};

/// The patches of an image of these sizes, right-aligned in three places.
PatchAttributes patches_of(const std::array<std::int64_t, 3>& sizes, int axes,
                           const PerAxis& kernel, const UnfoldOptions& options, const char* name,
                           const Where& where) {
  const auto kernels = kernel.fill(axes, 1, 1, name, "kernel", where);
  const auto strides = options.stride.fill(axes, 1, 1, name, "stride", where);
  const auto paddings = options.padding.fill(axes, 0, 0, name, "padding", where);
  const auto dilations = options.dilation.fill(axes, 1, 1, name, "dilation", where);
  PatchAttributes patches;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::int64_t room = sizes[i] + 2 * paddings[i] - ((kernels[i] - 1) * dilations[i] + 1);
    if (room < 0) {
      throw ShapeError(name,
                       "kernel " + std::to_string(kernels[i]) + " with dilation " +
                           std::to_string(dilations[i]) + " is larger than an axis of " +
                           std::to_string(sizes[i]) + " with padding " +
                           std::to_string(paddings[i]) + "; use a smaller kernel",
                       where);
    }
    patches.axes[i] = {sizes[i],   room / strides[i] + 1, kernels[i],
                       strides[i], paddings[i],           dilations[i]};
  }
  return patches;
}

}  // namespace

std::span<const Operation* const> unfold_operations() {
  static const Operation* const family[] = {&unfold_operation, &fold_operation};
  return family;
}

Var unfold(const Var& x, const PerAxis& kernel, const UnfoldOptions& options, Where where) {
  require_value(x, "unfold", where);
  const Shape shape = x.shape();
  const int axes = shape.rank() - 2;
  if (axes < 1 || axes > 3) {
    throw ShapeError(
        "unfold",
        "input " + to_string(shape) + " is not (batch, channels, 1 to 3 spatial axes); reshape it",
        where);
  }
  const PatchAttributes patches =
      patches_of(spatial_sizes(shape, 2), axes, kernel, options, "unfold", where);
  const Shape result(
      {shape[0], multiply_sizes(shape[1], patches.kernel_size()), patches.output_size()}, where);
  return record_patches(unfold_operation, x, result, patches, where);
}

Var fold(const Var& x, std::span<const std::int64_t> sizes, const PerAxis& kernel,
         const UnfoldOptions& options, Where where) {
  require_value(x, "fold", where);
  if (x.dtype() == DType::boolean) {
    throw DTypeError("fold", "takes numbers, not " + to_string(x.type()) + "; cast it first",
                     where);
  }
  const Shape shape = x.shape();
  const int axes = static_cast<int>(sizes.size());
  if (axes < 1 || axes > 3) {
    throw ArgumentError("fold", std::to_string(axes) + " sizes of the result; give one to three",
                        where);
  }
  const Shape spatial(sizes, where);
  const PatchAttributes patches =
      patches_of(spatial_sizes(spatial, 0), axes, kernel, options, "fold", where);
  const std::int64_t taps = patches.kernel_size();
  if (shape.rank() != 3 || shape[1] % taps != 0 || shape[2] != patches.output_size()) {
    throw ShapeError("fold",
                     "input " + to_string(shape) + " is not (batch, channels·" +
                         std::to_string(taps) + ", " + std::to_string(patches.output_size()) +
                         "), the shape of the patches of an image of " + to_string(spatial),
                     where);
  }
  Shape result{shape[0], shape[1] / taps};
  for (const std::int64_t size : spatial) result.push_back(size);
  const Var sums = record_patches(fold_operation, widened(x, where), result, patches, where);
  return cast(sums, x.dtype(), where);
}

Var fold(const Var& x, std::initializer_list<std::int64_t> sizes, const PerAxis& kernel,
         const UnfoldOptions& options, Where where) {
  return fold(x, std::span(sizes.begin(), sizes.size()), kernel, options, where);
}

}  // namespace palimpsest
