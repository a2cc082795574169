#include "autodiff/operations/image.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <cmath>
#include <limits>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"
#include "tests/catch.h"
#include "tests/error_of.h"

namespace palimpsest::image_test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::WithinAbs;
using Numbers = std::vector<float>;

constexpr Interpolation linear = Interpolation::linear;

Numbers elements(const Var& y) {
  const Tensor value = y.value();
  const auto data = value.data<float>();
  return {data.begin(), data.end()};
}

Var row(Tape& tape, std::initializer_list<float> values) {
  return tape.parameter(Tensor::from(values, {1, 1, static_cast<std::int64_t>(values.size())}));
}

TEST_CASE("resizing puts elements where the formulas say") {
  Tape tape;
  const Var x = row(tape, {0, 2, 4, 8});
  CHECK(elements(upsample(x, 2)) == Numbers{0, 0, 2, 2, 4, 4, 8, 8});
  CHECK(elements(resize(x, 3)) == Numbers{0, 2, 4});
  CHECK(elements(upsample(x, 2, {linear})) == Numbers{0, 0.5, 1.5, 2.5, 3.5, 5, 7, 8});
  CHECK(elements(resize(x, 7, {linear, true})) == Numbers{0, 1, 2, 3, 4, 6, 8});
  CHECK(elements(resize(x, 2, {linear})) == Numbers{1, 6});
  CHECK(elements(resize(x, 4, {linear})) == elements(x));
  CHECK(elements(resize(x, 1, {linear, true})) == Numbers{0});
}

TEST_CASE("pixels shuffled come back, channels as sub-images") {
  Tape tape;
  const Var x = tape.constant(Tensor::arange(16, DType::f32).reshape({1, 4, 2, 2}));
  const Var y = pixel_shuffle(x, 2);
  CHECK(y.shape() == Shape{1, 1, 4, 4});
  CHECK(elements(y) == Numbers{0, 4, 1, 5, 8, 12, 9, 13, 2, 6, 3, 7, 10, 14, 11, 15});
  CHECK(elements(pixel_unshuffle(y, 2)) == elements(x));

  const Var wide =
      tape.constant(Tensor::arange(2 * 18 * 4 * 11, DType::f32).reshape({2, 18, 4, 11}));
  const Tensor shuffled = pixel_shuffle(wide, 3).value();
  REQUIRE(shuffled.shape() == Shape{2, 2, 12, 33});
  std::int64_t wrong = 0;
  for (std::int64_t at = 0; at < shuffled.elements(); ++at) {
    const std::int64_t column = at % 33, row = at / 33 % 12, image = at / (33 * 12);
    const std::int64_t channel = image * 9 + row % 3 * 3 + column % 3;
    wrong += shuffled.at(at) != static_cast<double>((channel * 4 + row / 3) * 11 + column / 3);
  }
  CHECK(wrong == 0);
  CHECK(elements(pixel_unshuffle(pixel_shuffle(wide, 3), 3)) == elements(wide));
}

TEST_CASE("a grid of the image's own centres gives the image, others what lies between") {
  Tape tape;
  const Var x = tape.constant(Tensor::from({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {1, 1, 2, 3}));
  const auto at = [&](float across, float down, const GridSampleOptions& options = {}) {
    const Var grid = tape.constant(Tensor::from({across, down}, {1, 1, 1, 2}));
    return elements(grid_sample(x, grid, options))[0];
  };
  constexpr GridPadding border = GridPadding::border;
  CHECK(at(0, -0.5f) == 2);
  CHECK_THAT(at(2.0f / 3, 0.5f), WithinAbs(6, 1e-5));
  CHECK(at(0, 0) == 3.5);
  CHECK(at(-1, -1, {.align_corners = true}) == 1);
  CHECK(at(1, 0, {.align_corners = true}) == 4.5);
  CHECK(at(-1, -0.5f) == 0.5);  // half of the weight lies outside
  CHECK(at(-1, -0.5f, {.padding = border}) == 1);
  CHECK(at(9, 9) == 0);
  CHECK(at(9, 9, {.padding = border}) == 6);
  CHECK(at(std::numeric_limits<float>::quiet_NaN(), 0) == 0);
  CHECK(at(0, -std::numeric_limits<float>::infinity()) == 0);
}

TEST_CASE("the nearest element of a place, of two the even one") {
  Tape tape;
  const Var x = tape.parameter(Tensor::from({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {1, 1, 2, 3}));
  // Horizontally, −1, 0 and 1 are pixels, and −0.5 and 0.5 lie halfway between them.
  const Var grid = tape.parameter(Tensor::from(
      {-0.6f, -1.0f, -0.5f, -1.0f, 0.5f, 1.0f, 1.4f, 1.0f, 1.6f, 1.0f, -9.0f, 0.0f}, {1, 1, 6, 2}));
  constexpr Interpolation nearest = Interpolation::nearest;
  const Var outside = grid_sample(x, grid, {nearest, GridPadding::zeros, true});
  CHECK(elements(outside) == Numbers{1, 1, 6, 6, 0, 0});
  CHECK(elements(grid_sample(x, grid, {nearest, GridPadding::border, true})) ==
        Numbers{1, 1, 6, 6, 6, 1});
  CHECK(elements(gradient(outside, x)) == Numbers{2, 0, 0, 0, 0, 2});
  CHECK(elements(gradient(outside, grid)) == Numbers(12, 0));
  // Only the nearest pixel counts, even next to an infinity.
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const Var odd = tape.constant(Tensor::from({1.0f, infinity}, {1, 1, 1, 2}));
  const Var left = tape.constant(Tensor::from({-0.5f, 0.0f}, {1, 1, 1, 2}));
  CHECK(elements(grid_sample(odd, left, {nearest})) == Numbers{1});
}

TEST_CASE("cubic interpolation has four weights, some negative") {
  Tape tape;
  constexpr ResizeOptions cubic{.interpolation = Interpolation::cubic};
  const Var x = tape.constant(Tensor::from({0.0, 0.0, 1.0, 0.0, 0.0, 0.0}, {1, 1, 6}));
  const Tensor doubled = resize(x, 12, cubic).value();
  // at distances ±1.75, ±1.25, ±0.75 and ±0.25 from the 1
  const double weights[] = {-0.03515625, -0.10546875, 0.26171875, 0.87890625};
  for (std::int64_t i = 0; i < 4; ++i) {
    CHECK_THAT(doubled.at(1 + i), WithinAbs(weights[i], 1e-15));
    CHECK_THAT(doubled.at(8 - i), WithinAbs(weights[i], 1e-15));
  }
  CHECK(doubled.at(0) == 0);
  const Tensor corners = resize(x, 11, {Interpolation::cubic, true}).value();
  for (std::int64_t i = 0; i < 6; ++i) CHECK(corners.at(2 * i) == x.value().at(i));
  const Var constant = tape.constant(Tensor::full({1, 1, 3, 4}, 7).to(DType::f64));
  CHECK(same_bits(interpolate(x, 12, cubic).value(), doubled));
  const Tensor same = resize(constant, {5, 9}, cubic).value();
  for (std::int64_t i = 0; i < 45; ++i) CHECK_THAT(same.at(i), WithinAbs(7, 1e-14));
}

TEST_CASE("a volume sampled in a plane is the image in that plane") {
  Tape tape;
  const Var volume = tape.constant(Tensor::normal({2, 3, 4, 5, 6}, 1, 0, 1, DType::f64));
  const Var grid = tape.constant(Tensor::uniform({2, 1, 7, 2}, 2, -1.2, 1.2, DType::f64));
  const Var deep = full(tape, {2, 1, 7, 1}, -1.0 / 3, DType::f64);  // the second of four planes
  constexpr GridSampleOptions options{.align_corners = true};
  const Var points = reshape(concat({grid, deep}, -1), {2, 1, 1, 7, 3});
  const Var sampled = grid_sample(volume, points, options);
  const Var plane = grid_sample(select(volume, 2, 1), grid, options);
  CHECK(sampled.shape() == Shape{2, 3, 1, 1, 7});
  CHECK(max(abs(reshape(sampled, plane.shape()) - plane)).item() < 1e-13);
}

TEST_CASE("channels are shuffled as a transposed matrix") {
  Tape tape;
  const Var x = reshape(tape.constant(Tensor::arange(6)), {1, 6, 1, 1});
  CHECK(elements(cast(channel_shuffle(x, 2), DType::f32)) == Numbers{0, 3, 1, 4, 2, 5});
  CHECK_THROWS_WITH(channel_shuffle(x, 4), Contains("4 groups do not divide"));
  CHECK_THROWS_AS(channel_shuffle(reshape(x, {6}), 2), ShapeError);
}

TEST_CASE("what sampling and pooling refuse") {
  Tape tape;
  const Var x = tape.constant(Tensor::ones({1, 1, 2, 2, 2}));
  const Var grid = tape.constant(Tensor::ones({1, 2, 2, 2}));
  CHECK_THROWS_WITH(grid_sample(x, grid), Contains("(batch, depth, height, width, 3)"));
  CHECK_THROWS_WITH(grid_sample(select(x, 2, 0), grid, {Interpolation::cubic}),
                    Contains("no cubic interpolation"));
  CHECK_THROWS_WITH(lp_pool(x, 0.5, 2), Contains("[lp_pool] p = 0.5"));
}

TEST_CASE("images have the same bits at any thread count") {
  const tbb::global_control eight(tbb::global_control::max_allowed_parallelism, 8);
  const auto run = [](int threads) {
    return tbb::task_arena(threads).execute([] {
      Tape tape;
      const Var x = tape.parameter(Tensor::normal({3, 16, 30, 29}, 3));
      const Var grid = tape.parameter(Tensor::uniform({3, 60, 58, 2}, 4, -1.1, 1.1));
      const Var y = upsample(x, 2, {linear}) * grid_sample(x, grid) + resize(x, {60, 58});
      const std::vector<Var> adjoints = gradient(y * y, {x, grid});
      return std::vector<Tensor>{y.value(), adjoints[0].value(), adjoints[1].value(),
                                 pixel_shuffle(x, 4).value()};
    });
  };
  const std::vector<Tensor> one = run(1);
  for (const int threads : {2, 8}) {
    const std::vector<Tensor> many = run(threads);
    for (std::size_t i = 0; i < one.size(); ++i) CHECK(same_bits(one[i], many[i]));
  }
}

Var zeros(const Var& x, const Shape& shape) { return x.tape().parameter(Tensor::zeros(shape)); }

TEST_CASE("operations on images say what does not fit") {
  const struct {
    void (*call)(const Var&);
    const char* words;
  } cases[] = {
      {[](const Var& x) { resize(x, {1, 0}); }, "[resize] size is 0; it must be at least 1"},
      {[](const Var& x) { upsample(x, {1, 2, 3}); }, "[upsample] factor has 3 numbers for 2"},
      {[](const Var& x) { resize(cast(x, DType::i32), 2); }, "takes floating dtypes, not i32"},
      {[](const Var& x) { resize(zeros(x, {2, 3}), 2); },
       "input (2, 3) is not (batch, channels, 1 to 3 spatial axes)"},
      {[](const Var& x) { resize(zeros(x, {2, 3, 0}), 2); }, "an axis of size 0"},
      {[](const Var& x) { pixel_shuffle(x, 2); }, "4 does not divide the 3 channels of input"},
      {[](const Var& x) { pixel_shuffle(x, 0); }, "r is 0; give a positive number"},
      {[](const Var& x) { pixel_unshuffle(x, 4); }, "4 does not divide height and width"},
      {[](const Var& x) { pixel_unshuffle(zeros(x, {2, 3, 4}), 2); },
       "input (2, 3, 4) is not (batch, channels, height, width)"},
      {[](const Var& x) { grid_sample(x, zeros(x, {1, 5, 5, 2})); },
       "grid (1, 5, 5, 2) does not fit input (2, 3, 4, 6); give (batch, height, width, 2)"},
      {[](const Var& x) { grid_sample(x, zeros(x, {2, 5, 5, 3})); }, "does not fit"},
      {[](const Var& x) { grid_sample(zeros(x, {2, 5, 2}), x); },
       "is not a non-empty (batch, channels, height, width)"},
      {[](const Var& x) { grid_sample(cast(x, DType::i32), cast(x, DType::i32)); },
       "[grid_sample] takes floating dtypes, not i32"},
  };
  for (const auto& [call, words] : cases) {
    Tape tape;
    const Var x = tape.parameter(Tensor::zeros({2, 3, 4, 6}));
    CHECK_THAT(error_of([&, &f = call] { f(x); }), Contains(words) && Contains("image_test.cpp"));
  }
}

TEST_CASE("second derivatives of a 16-bit grid are those of the f32 one, and NaN is outside") {
  const auto second = [](DType dtype, double place) {
    Tape tape;
    const Var x = tape.parameter(Tensor::arange(600, dtype).reshape({1, 1, 1, 600}));
    const Var grid = tape.parameter(Tensor::from<double>({place, 0}, {1, 1, 1, 2}).to(dtype));
    const Var by_grid = gradient(grid_sample(x, grid), grid);
    return gradient(by_grid, x).value().to(DType::f64);
  };
  const Tensor exact = second(DType::f32, 0.90625);
  CHECK(same_bits(second(DType::bf16, 0.90625), exact.to(DType::bf16).to(DType::f64)));
  CHECK(same_bits(second(DType::f32, std::nan("")), Tensor::zeros({1, 1, 1, 600}, DType::f64)));
}

/// A grid point at the last element of the first `axes` axes, and between elements along the
/// others.
Tensor last_elements(std::int64_t rank, std::int64_t axes, bool align_corners, double sign) {
  std::vector<double> place(static_cast<std::size_t>(rank), 0.25);
  std::fill_n(place.begin(), axes, sign * (align_corners ? 1.0 : 0.75));
  Shape shape{1, 1, 1, rank};
  if (rank == 3) shape = {1, 1, 1, 1, 3};
  return Tensor::from<double>(place, shape);
}

TEST_CASE("at the border of an image, no derivative flows to the axes of the grid that are there") {
  for (const std::int64_t rank : {2, 3}) {
    for (const bool corners : {true, false}) {
      for (const double sign : {1.0, -1.0}) {
        for (std::int64_t axes = 1; axes <= rank; ++axes) {
          CAPTURE(rank, corners, sign, axes);
          Tape tape;
          const Shape shape = rank == 2 ? Shape{1, 2, 4, 4} : Shape{1, 2, 4, 4, 4};
          const Var x = tape.parameter(Tensor::normal(shape, 3, 0, 1, DType::f64));
          const Var grid = tape.parameter(last_elements(rank, axes, corners, sign));
          const Var y =
              grid_sample(x, grid, {.padding = GridPadding::border, .align_corners = corners});
          const Var by_grid = gradient(y, grid);
          const Tensor slopes = by_grid.value();
          for (std::int64_t i = 0; i < rank; ++i) CHECK((slopes.at(i) == 0) == (i < axes));
          // The derivative is linear in the image, so it is its own derivative by the image times
          // x.
          const Var seed = tape.constant(Tensor::normal(grid.shape(), 4, 0, 1, DType::f64));
          const Var mixed = gradient(sum(by_grid * seed), x);
          CHECK_THAT(sum(mixed * x).item(), WithinAbs(sum(by_grid * seed).item(), 1e-12));
        }
      }
    }
  }
}

TEST_CASE("factors too large to square are refused") {
  Tape tape;
  const Var x = tape.constant(Tensor::zeros({1, 4, 2, 2}));
  CHECK_THROWS_AS(pixel_shuffle(x, std::int64_t{1} << 32), ArgumentError);
}

}  // namespace
}  // namespace palimpsest::image_test
