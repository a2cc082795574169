#pragma once

#include "autodiff/export.h"
#include "autodiff/operations/per_axis.h"
#include "autodiff/var.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Each setting is one number for all spatial axes or one per axis (see `PerAxis`).
struct ConvolutionOptions {
  PerAxis stride = 1;
  PerAxis padding = 0;  ///< zeros on both sides
  PerAxis dilation = 1;
  std::int64_t groups = 1;
  Channels channels = Channels::first;  ///< layout of x and y; weights keep their order
};

/// y(b, o, q) = bias(o) + Σ w(o, c, t)·x(b, c, q·stride − padding + t·dilation). The sum runs over
/// the channels c of o's group and the positions t in the kernel. As usual in deep learning, the
/// kernel is not flipped.
///
/// - x is (batch, channels, 1 to 3 sizes). With `Channels::last` x and y are (batch, 1 to 3 sizes,
///   channels).
/// - w is (results, channels/groups, kernel). As many groups as channels give a depthwise
///   convolution.
/// - bias is (results), or an empty `Var`.
/// - y is (batch, results, sizes'), where each size becomes
///   ⌊(size + 2·padding − dilation·(kernel − 1) − 1)/stride⌋ + 1.
///
/// Operands are promoted to a common floating dtype. If x lacks the batch axis (one axis fewer than
/// w), so does y.
///
/// Throws `ShapeError` when channels do not match, the kernel is larger than the padded input or
/// the bias has another size; `ArgumentError` when groups do not divide both channels and results
/// or a setting is out of range; `DTypeError` for operands that are not floating.
Var convolution(const Var& x, const Var& weight, const Var& bias = {},
                const ConvolutionOptions& options = {}, Where where = Where::current());

/// `convolution` of sequences (batch, channels, length), or of one without a batch axis. Throws
/// `ShapeError` for other ranks.
Var conv1d(const Var& x, const Var& weight, const Var& bias = {},
           const ConvolutionOptions& options = {}, Where where = Where::current());
/// `convolution` of images (batch, channels, height, width), or of one. Throws likewise.
Var conv2d(const Var& x, const Var& weight, const Var& bias = {},
           const ConvolutionOptions& options = {}, Where where = Where::current());
/// `convolution` of volumes (batch, channels, depth, height, width), or of one. Throws likewise.
Var conv3d(const Var& x, const Var& weight, const Var& bias = {},
           const ConvolutionOptions& options = {}, Where where = Where::current());

struct TransposedConvolutionOptions {
  PerAxis stride = 1;
  PerAxis padding = 0;         ///< removed from both sides of the result
  PerAxis output_padding = 0;  ///< added at the end of the result; less than the stride
  PerAxis dilation = 1;
  std::int64_t groups = 1;
  Channels channels = Channels::first;  ///< layout of x and y; weights keep their order
};

/// The adjoint of `convolution` with respect to its input, as a layer. It computes
/// x(b, r, h) = bias(r) + Σ w(c, r, t)·y(b, c, q). The sum runs over the channels c of r's group,
/// and all q and t with q·stride − padding + t·dilation = h.
///
/// - y is (batch, channels, sizes), w (channels, results/groups, kernel), bias (results) or empty.
/// - x is (batch, results, sizes'), where each size becomes
///   (size − 1)·stride − 2·padding + dilation·(kernel − 1) + output_padding + 1.
///
/// The batch axis may be missing as in `convolution`. Throws as `convolution` does, and
/// `ShapeError` when nothing is left of the result.
Var transposed_convolution(const Var& y, const Var& weight, const Var& bias = {},
                           const TransposedConvolutionOptions& options = {},
                           Where where = Where::current());

/// Settings of `unfold` and `fold`; those of the convolution that reads the same patches.
struct UnfoldOptions {
  PerAxis stride = 1;
  PerAxis padding = 0;  ///< zeros on both sides
  PerAxis dilation = 1;
};

/// The patches that a convolution with this kernel reads, as columns (im2col). x is (batch,
/// channels, 1 to 3 sizes). The result is (batch, channels·elements of the kernel, patches). Each
/// size has (size + 2·padding − dilation·(kernel − 1) − 1)/stride + 1 patches, rounded down. Any
/// dtype. So `matmul(reshape(w, {outputs, -1}), unfold(x, kernel))` is a convolution.
///
/// Throws `ShapeError` for other ranks and for kernels larger than the padded input,
/// `ArgumentError` for settings out of range.
Var unfold(const Var& x, const PerAxis& kernel, const UnfoldOptions& options = {},
           Where where = Where::current());

/// The adjoint of `unfold`: the patches (batch, channels·elements of the kernel, patches), added up
/// in an image (batch, channels, `sizes`). Elements are added in the order of their positions in
/// the kernel. Throws as `unfold`, and `DTypeError` for bool.
Var fold(const Var& x, std::span<const std::int64_t> sizes, const PerAxis& kernel,
         const UnfoldOptions& options = {}, Where where = Where::current());
Var fold(const Var& x, std::initializer_list<std::int64_t> sizes, const PerAxis& kernel,
         const UnfoldOptions& options = {}, Where where = Where::current());

}  // namespace palimpsest
