#include "autodiff/operations/convolution.h"

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "tests/autodiff/operation_rows.h"

namespace palimpsest {
namespace {}  // namespace

std::vector<OperationRow> convolution_rows() {
  const Tensor sequence = normal_numbers({2, 3, 11}, 1);
  const Tensor image = normal_numbers({2, 4, 6, 5}, 2);
  const Tensor volume = normal_numbers({1, 2, 4, 3, 5}, 3);
  const Tensor kernel = normal_numbers({6, 4, 3, 3}, 4);
  return {
      {"convolution",
       "sequence, dilated",
       {sequence, normal_numbers({4, 3, 3}, 5), normal_numbers({4}, 6)},
       [](auto xs) { return conv1d(xs[0], xs[1], xs[2], {.padding = 1, .dilation = 2}); }},
      {"convolution",
       "image, padded",
       {image, kernel},
       [](auto xs) { return conv2d(xs[0], xs[1], {}, {.padding = 1}); }},
      {"convolution",
       "image, stride and padding per axis, bias",
       {image, kernel, normal_numbers({6}, 7)},
       [](auto xs) { return conv2d(xs[0], xs[1], xs[2], {.stride = {2, 1}, .padding = {1, 0}}); }},
      {"convolution",
       "groups",
       {image, normal_numbers({6, 2, 2, 3}, 8)},
       [](auto xs) { return conv2d(xs[0], xs[1], {}, {.stride = 2, .padding = 1, .groups = 2}); }},
      {"convolution",
       "depthwise",
       {image, normal_numbers({4, 1, 3, 3}, 9), normal_numbers({4}, 10)},
       [](auto xs) { return conv2d(xs[0], xs[1], xs[2], {.padding = 1, .groups = 4}); }},
      {"convolution",
       "kernel of one element",
       {image, normal_numbers({5, 4, 1, 1}, 11)},
       [](auto xs) { return conv2d(xs[0], xs[1]); }},
      {"convolution",
       "volume",
       {volume, normal_numbers({3, 2, 2, 2, 3}, 12)},
       [](auto xs) {
         return conv3d(xs[0], xs[1], {}, {.stride = {1, 2, 2}, .padding = {0, 1, 1}});
       }},
      {"convolution",
       "empty batch",
       {Tensor::zeros({0, 4, 6, 5}, DType::f64), kernel},
       [](auto xs) { return conv2d(xs[0], xs[1]); }},
      {"convolution",
       "one image without a batch, bias",
       {normal_numbers({4, 6, 5}, 20), kernel, normal_numbers({6}, 7)},
       [](auto xs) { return conv2d(xs[0], xs[1], xs[2], {.padding = 1}); }},
      {"convolution",
       "channels last, stride, bias",
       {normal_numbers({2, 6, 5, 4}, 22), kernel, normal_numbers({6}, 7)},
       [](auto xs) {
         return conv2d(xs[0], xs[1], xs[2],
                       {.stride = {2, 1}, .padding = 1, .channels = Channels::last});
       }},
      {"transposed_convolution",
       "channels last, groups",
       {normal_numbers({2, 5, 4}, 23), normal_numbers({4, 3, 2}, 24)},
       [](auto xs) {
         return transposed_convolution(xs[0], xs[1], {},
                                       {.stride = 2, .groups = 2, .channels = Channels::last});
       }},
      {"transposed_convolution",
       "one sequence without a batch",
       {normal_numbers({3, 11}, 21), normal_numbers({3, 2, 4}, 13)},
       [](auto xs) { return transposed_convolution(xs[0], xs[1], {}, {.stride = 2}); }},
      {"transposed_convolution",
       "sequence",
       {sequence, normal_numbers({3, 2, 4}, 13), normal_numbers({2}, 14)},
       [](auto xs) {
         return transposed_convolution(xs[0], xs[1], xs[2],
                                       {.stride = 3, .padding = 1, .output_padding = 2});
       }},
      {"transposed_convolution",
       "image, groups, dilated",
       {image, normal_numbers({4, 3, 2, 2}, 15)},
       [](auto xs) {
         return transposed_convolution(
             xs[0], xs[1], {}, {.stride = 2, .padding = 1, .dilation = {1, 2}, .groups = 2});
       }},
      {"transposed_convolution",
       "stride longer than the kernel",
       {image, normal_numbers({4, 2, 1, 2}, 16), normal_numbers({2}, 17)},
       [](auto xs) { return transposed_convolution(xs[0], xs[1], xs[2], {.stride = 3}); }},
      {"convolution_weight",
       "strided",
       {image, normal_numbers({3, 4, 3, 3}, 18)},
       [](auto xs) {
         const Var y = conv2d(xs[0], xs[1], {}, {.stride = 2, .padding = 1});
         return gradient(y * y, xs[1]);
       },
       2,
       false},
      {"convolution_weight",
       "depthwise",
       {image, normal_numbers({4, 1, 3, 3}, 19)},
       [](auto xs) {
         const Var y = conv2d(xs[0], xs[1], {}, {.padding = 1, .groups = 4});
         return gradient(y * y, xs[1]);
       },
       2,
       false},
      {"unfold",
       "image, overlapping, padded",
       {image},
       [](auto xs) {
         const Var y = unfold(xs[0], {3, 2}, {.stride = {2, 1}, .padding = {1, 2}});
         return y * y;
       }},
      {"unfold",
       "sequence, dilated",
       {sequence},
       [](auto xs) { return unfold(xs[0], 3, {.stride = 2, .dilation = 3}); }},
      {"unfold",
       "volume",
       {volume},
       [](auto xs) { return unfold(xs[0], {2, 1, 3}, {.padding = 1}); }},
      {"unfold",
       "empty batch",
       {Tensor::zeros({0, 4, 6, 5}, DType::f64)},
       [](auto xs) { return unfold(xs[0], 2); }},
      {"fold",
       "image, overlapping, padded",
       {normal_numbers({2, 12, 6}, 23)},
       [](auto xs) {
         const Var y = fold(xs[0], {5, 4}, {3, 2}, {.stride = {2, 1}});
         return y * y;
       }},
      {"fold",
       "image, strided, dilated",
       {normal_numbers({1, 8, 6}, 24)},
       [](auto xs) {
         return fold(xs[0], {5, 6}, 2, {.stride = 2, .padding = {0, 1}, .dilation = 2});
       }},
  };
}

}  // namespace palimpsest
