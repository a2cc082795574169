#include "autodiff/operations/image.h"

#include "autodiff/gradient.h"
#include "tests/autodiff/operation_rows.h"

namespace palimpsest {

std::vector<OperationRow> image_rows() {
  const auto normal = [](Shape shape, std::uint64_t seed) {
    return Tensor::normal(shape, seed, 0, 1, DType::f64);
  };
  const Tensor sequence = normal({2, 3, 5}, 1);
  const Tensor image = normal({2, 3, 4, 5}, 2);
  const Tensor volume = normal({1, 2, 3, 2, 4}, 3);
  // Keeps away from the kinks of the interpolation; some positions lie outside of the image.
  const Tensor grid = Tensor::uniform({2, 3, 3, 2}, 4, -1.4, 1.4, DType::f64);
  const Tensor points = Tensor::uniform({1, 2, 1, 3, 3}, 12, -1.4, 1.4, DType::f64);
  constexpr Interpolation linear = Interpolation::linear;
  constexpr Interpolation cubic = Interpolation::cubic;
  return {
      {"resize", "nearest, doubled", {image}, [](auto xs) { return upsample(xs[0], 2); }},
      {"resize",
       "nearest, other sizes",
       {volume},
       [](auto xs) { return resize(xs[0], {2, 5, 3}); }},
      {"resize",
       "bilinear, edges kept",
       {image},
       [](auto xs) { return upsample(xs[0], {2, 3}, {linear}); }},
      {"resize",
       "bilinear, corners kept",
       {image},
       [](auto xs) { return resize(xs[0], {7, 3}, {linear, true}); }},
      {"resize", "trilinear", {volume}, [](auto xs) { return resize(xs[0], {4, 3, 6}, {linear}); }},
      {"resize",
       "trilinear, corners kept, shrinking",
       {volume},
       [](auto xs) { return resize(xs[0], {2, 4, 3}, {linear, true}); }},
      {"resize",
       "linear to one element",
       {sequence},
       [](auto xs) { return resize(xs[0], 1, {linear, true}); }},
      {"resize", "bicubic", {image}, [](auto xs) { return resize(xs[0], {7, 3}, {cubic}); }},
      {"resize",
       "bicubic, corners kept",
       {image},
       [](auto xs) { return resize(xs[0], {3, 8}, {cubic, true}); }},
      {"resize",
       "tricubic, one size kept",
       {volume},
       [](auto xs) { return resize(xs[0], {3, 4, 1}, {cubic}); }},
      {"resize",
       "empty batch",
       {Tensor::zeros({0, 3, 4, 5}, DType::f64)},
       [](auto xs) { return upsample(xs[0], 2); }},
      {"resize_adjoint",
       "bilinear",
       {image, normal({2, 3, 6, 7}, 5)},
       [](auto xs) {
         const Var y = resize(xs[0], {6, 7}, {linear});
         return vjp({&y, 1}, {&xs[0], 1}, {&xs[1], 1})[0];
       }},
      {"resize_adjoint",
       "bicubic",
       {image, normal({2, 3, 6, 7}, 5)},
       [](auto xs) {
         const Var y = resize(xs[0], {6, 7}, {cubic});
         return vjp({&y, 1}, {&xs[0], 1}, {&xs[1], 1})[0];
       }},
      {"permute",
       "of channel_shuffle",
       {normal({2, 6, 3}, 6)},
       [](auto xs) { return channel_shuffle(xs[0], 2); }},
      {"permute",
       "of pixel_shuffle",
       {normal({2, 8, 2, 3}, 6)},
       [](auto xs) { return pixel_shuffle(xs[0], 2); }},
      {"permute",
       "of pixel_shuffle in threes",
       {normal({1, 9, 5, 11}, 11)},
       [](auto xs) { return pixel_shuffle(xs[0], 3); }},
      {"permute",
       "of pixel_unshuffle",
       {normal({2, 2, 4, 6}, 7)},
       [](auto xs) { return pixel_unshuffle(xs[0], 2); }},
      {"grid_sample",
       "zeros outside",
       {image, grid},
       [](auto xs) { return grid_sample(xs[0], xs[1]); },
       2,
       false},  // in 16 bits, a position moves by some per cent of a pixel
      {"grid_sample",
       "border outside, corners at the ends",
       {image, grid},
       [](auto xs) {
         return grid_sample(xs[0], xs[1], {.padding = GridPadding::border, .align_corners = true});
       },
       2,
       false},
      {"grid_sample",
       "nearest, zeros outside",
       {image, grid},
       [](auto xs) { return grid_sample(xs[0], xs[1], {Interpolation::nearest}); },
       2,
       false},
      {"grid_sample",
       "volume, zeros outside",
       {volume, points},
       [](auto xs) { return grid_sample(xs[0], xs[1]); },
       2,
       false},
      {"grid_sample",
       "volume, border outside, corners at the ends",
       {volume, points},
       [](auto xs) {
         return grid_sample(xs[0], xs[1], {.padding = GridPadding::border, .align_corners = true});
       },
       2,
       false},
      {"grid_sample",
       "volume, nearest",
       {volume, points},
       [](auto xs) { return grid_sample(xs[0], xs[1], {Interpolation::nearest}); },
       2,
       false},
      {"grid_sample_image_adjoint",
       "volume",
       {volume, points, normal({1, 2, 2, 1, 3}, 8)},
       [](auto xs) {
         const Var y = grid_sample(xs[0], xs[1]);
         return vjp({&y, 1}, {&xs[0], 1}, {&xs[2], 1})[0];
       },
       1,
       false},
      {"grid_sample_grid_adjoint",
       "volume",
       {volume, points, normal({1, 2, 2, 1, 3}, 9)},
       [](auto xs) {
         const Var y = grid_sample(xs[0], xs[1]);
         return vjp({&y, 1}, {&xs[1], 1}, {&xs[2], 1})[0];
       },
       1,
       false},
      {"grid_sample_image_adjoint",
       "nearest, border outside",
       {image, grid, normal({2, 3, 3, 3}, 10)},
       [](auto xs) {
         const Var y =
             grid_sample(xs[0], xs[1], {Interpolation::nearest, GridPadding::border, true});
         return vjp({&y, 1}, {&xs[0], 1}, {&xs[2], 1})[0];
       },
       2,
       false},
      {"grid_sample_image_adjoint",
       "zeros outside",
       {image, grid, normal({2, 3, 3, 3}, 8)},
       [](auto xs) {
         const Var y = grid_sample(xs[0], xs[1]);
         return vjp({&y, 1}, {&xs[0], 1}, {&xs[2], 1})[0];
       },
       2,
       false},
      {"grid_sample_grid_adjoint",
       "zeros outside",
       {image, grid, normal({2, 3, 3, 3}, 9)},
       [](auto xs) {
         const Var y = grid_sample(xs[0], xs[1]);
         return vjp({&y, 1}, {&xs[1], 1}, {&xs[2], 1})[0];
       },
       2,
       false},
  };
}

}  // namespace palimpsest
