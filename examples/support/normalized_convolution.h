#pragma once

#include <palimpsest/nn/nn.h>
#include "palimpsest.h"

namespace examples {

/// A convolution of images by 3 × 3 weights, and a batch normalization. With a stride of 1, images
/// keep their size.
struct NormalizedConvolution {
  NormalizedConvolution(palimpsest::nn::Parameters p, std::int64_t inputs, std::int64_t outputs,
                        std::int64_t stride)
      : convolution(p / "convolution", inputs, outputs, 3,
                    {.convolution = {.stride = stride, .padding = 1},
                     .bias = false,
                     .weight_init = palimpsest::nn::init::kaiming_normal()}),
        norm(p / "norm", outputs) {}

  palimpsest::Var operator()(const palimpsest::Var& x) const { return norm(convolution(x)); }

  palimpsest::nn::Conv2d convolution;
  palimpsest::nn::BatchNormLayer norm;
};

}  // namespace examples
