#pragma once

#include "autodiff/operations/per_axis.h"
#include "autodiff/var.h"

namespace palimpsest {

struct ConvolutionOptions {
  PerAxis stride = 1;
  PerAxis padding = 0;  ///< zeros on either side
  PerAxis dilation = 1;
  std::int64_t groups = 1;
  Channels channels = Channels::first;  ///< of x and y; weights keep their order
};

/// y(b, o, q) = bias(o) + Σ w(o, c, t)·x(b, c, q·stride − padding + t·dilation) over the channels c
/// of o's group and the taps t: what deep learning calls convolution, without flipping the kernel.
/// x is (batch, channels, 1 to 3 sizes), w (results, channels/groups, kernel), bias (results) or an
/// empty `Var`; y is (batch, results, (size + 2·padding − dilation·(kernel − 1) − 1)/stride + 1
/// rounded down). With `Channels::last` x is (batch, 1 to 3 sizes, channels), and y likewise. With
/// as many groups as channels it is depthwise. Operands meet in their promoted floating dtype. An x
/// without the axis of the batch, one axis fewer than w has, gives a y without it.
///
/// Throws `ShapeError` when channels do not match, the kernel is larger than the padded input or
/// the bias has another size; `ArgumentError` when groups divide neither channels nor results or a
/// setting is out of range; `DTypeError` for operands that are not floating.
Var convolution(const Var& x, const Var& weight, const Var& bias = {},
                const ConvolutionOptions& options = {}, Where where = Where::current());

/// `convolution` of sequences (batch, channels, length), or of one without the batch; throws
/// `ShapeError` for other ranks.
Var conv1d(const Var& x, const Var& weight, const Var& bias = {},
           const ConvolutionOptions& options = {}, Where where = Where::current());
/// `convolution` of images (batch, channels, height, width).
Var conv2d(const Var& x, const Var& weight, const Var& bias = {},
           const ConvolutionOptions& options = {}, Where where = Where::current());
/// `convolution` of volumes (batch, channels, depth, height, width).
Var conv3d(const Var& x, const Var& weight, const Var& bias = {},
           const ConvolutionOptions& options = {}, Where where = Where::current());

struct TransposedConvolutionOptions {
  PerAxis stride = 1;
  PerAxis padding = 0;         ///< taken off either side of the result
  PerAxis output_padding = 0;  ///< added to the far side of the result; less than the stride
  PerAxis dilation = 1;
  std::int64_t groups = 1;
  Channels channels = Channels::first;  ///< of x and y; weights keep their order
};

/// The adjoint of `convolution` with respect to its input, as a layer of its own: for y of shape
/// (batch, channels, sizes) and w of shape (channels, results/groups, kernel), x(b, r, h) =
/// bias(r) + Σ w(c, r, t)·y(b, c, q) over all q, t with q·stride − padding + t·dilation = h. Sizes
/// become (size − 1)·stride − 2·padding + dilation·(kernel − 1) + output_padding + 1. The batch may
/// be missing as in `convolution`. Throws as `convolution` does.
Var transposed_convolution(const Var& y, const Var& weight, const Var& bias = {},
                           const TransposedConvolutionOptions& options = {},
                           Where where = Where::current());

}  // namespace palimpsest
