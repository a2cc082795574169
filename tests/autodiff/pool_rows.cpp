#include "autodiff/operations/image.h"

#include <limits>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "tests/autodiff/operation_rows.h"

namespace palimpsest {

std::vector<OperationRow> pool_rows() {
  const auto normal = [](Shape shape, std::uint64_t seed) {
    return Tensor::normal(shape, seed, 0, 1, DType::f64);
  };
  const Tensor sequence = normal({2, 3, 11}, 1);
  const Tensor image = normal({2, 3, 7, 6}, 2);
  const Tensor volume = normal({1, 2, 5, 4, 3}, 3);
  const Tensor empty = Tensor::zeros({0, 3, 7, 6}, DType::f64);
  Tensor spoiled = image.clone();
  for (std::size_t i = 0; i < 12; ++i) spoiled.data<double>()[i] = 0;  // two rows, all 0
  return {
      {"average_pool", "lp_pool", {image}, [](auto xs) { return lp_pool(xs[0], 2, {3, 2}); }},
      {"average_pool",
       "lp_pool with p = 3, overlapping",
       {sequence},
       [](auto xs) { return lp_pool(xs[0], 3, 4, {.stride = 2}); }},
      {"average_pool",
       "lp_pool, channels last",
       {image},
       [](auto xs) { return lp_pool(xs[0], 1, 2, {.channels = Channels::last}); }},
      {"average_pool",
       "lp_pool of zeros",
       {spoiled},
       [](auto xs) { return lp_pool(xs[0] * xs[0], 2, 2); },
       1},
      {"max_pool",
       "lp_pool with p = ∞",
       {image},
       [](auto xs) { return lp_pool(xs[0], std::numeric_limits<double>::infinity(), 2); }},
      {"max_pool", "sequence", {sequence}, [](auto xs) { return max_pool(xs[0], 3); }},
      {"max_pool",
       "image, overlapping, padded",
       {image},
       [](auto xs) { return max_pool(xs[0], 3, {.stride = {2, 1}, .padding = 1}); }},
      {"max_pool",
       "volume, rounded up",
       {volume},
       [](auto xs) { return max_pool(xs[0], {2, 2, 1}, {.ceil_mode = true}); }},
      {"max_pool",
       "dilated, padded",
       {image},
       [](auto xs) {
         return max_pool(xs[0], {3, 2}, {.stride = {2, 1}, .padding = {2, 1}, .dilation = {2, 3}});
       }},
      {"max_pool", "adaptive", {image}, [](auto xs) { return adaptive_max_pool(xs[0], {3, 4}); }},
      {"max_pool", "global", {volume}, [](auto xs) { return global_max_pool(xs[0]); }},
      {"max_pool",
       "channels last, overlapping",
       {image},
       [](auto xs) {
         return max_pool(xs[0], {2, 3}, {.stride = 1, .padding = 1, .channels = Channels::last});
       }},
      {"max_pool", "empty batch", {empty}, [](auto xs) { return max_pool(xs[0], 2); }},
      {"max_pool_pick",
       "by the derivative along a direction",
       {image, normal({2, 3, 7, 6}, 4), normal({2, 3, 3, 3}, 5)},
       [](auto xs) {
         const Var y = max_pool(xs[0], 2);
         const Var adjoint = vjp({&y, 1}, {&xs[0], 1}, {&xs[2], 1})[0];
         return vjp({&adjoint, 1}, {&xs[2], 1}, {&xs[1], 1})[0];
       }},
      {"max_pool_adjoint",
       "overlapping",
       {sequence, normal({2, 3, 5}, 6)},
       [](auto xs) {
         const Var y = max_pool(xs[0], 3, {.stride = 2});
         return vjp({&y, 1}, {&xs[0], 1}, {&xs[1], 1})[0];
       }},
      {"average_pool",
       "image, padding counted",
       {image},
       [](auto xs) { return average_pool(xs[0], 3, {.stride = 2, .padding = 1}); }},
      {"average_pool",
       "padding not counted, rounded up",
       {image},
       [](auto xs) {
         return average_pool(
             xs[0], {3, 2},
             {.stride = 2, .padding = 1, .ceil_mode = true, .count_include_pad = false});
       }},
      {"average_pool", "volume", {volume}, [](auto xs) { return average_pool(xs[0], {2, 3, 1}); }},
      {"average_pool",
       "adaptive, windows of different sizes",
       {sequence},
       [](auto xs) { return adaptive_average_pool(xs[0], 4); }},
      {"average_pool",
       "adaptive, enlarging",
       {volume},
       [](auto xs) { return adaptive_average_pool(xs[0], {7, 1, 3}); }},
      {"average_pool",
       "channels last, adaptive",
       {volume},
       [](auto xs) { return adaptive_average_pool(xs[0], {3, 2, 5}, Channels::last); }},
      {"average_pool", "empty batch", {empty}, [](auto xs) { return average_pool(xs[0], 2); }},
      {"average_pool_adjoint",
       "overlapping",
       {image, normal({2, 3, 3, 5}, 7)},
       [](auto xs) {
         const Var y = average_pool(xs[0], {3, 2}, {.stride = {2, 1}});
         return vjp({&y, 1}, {&xs[0], 1}, {&xs[1], 1})[0];
       }},
      {"mean", "of an image", {image}, [](auto xs) { return global_average_pool(xs[0]); }},
  };
}

}  // namespace palimpsest
