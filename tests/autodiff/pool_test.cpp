#include "autodiff/operations/image.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include "tests/catch.h"
//
#include <rapidcheck.h>
#include <rapidcheck/catch.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "tests/error_of.h"

namespace palimpsest::pool_test {
namespace {

using Catch::Matchers::Contains;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> elements(const Var& y) {
  const Tensor value = y.value();
  const auto data = value.data<float>();
  return {data.begin(), data.end()};
}

Var row(Tape& tape, std::initializer_list<float> values) {
  return tape.parameter(Tensor::from(values, {1, 1, static_cast<std::int64_t>(values.size())}));
}

TEST_CASE("windows at the edges") {
  Tape tape;
  const Var x = row(tape, {1, 2, 3, 4, 5, 6, 7});
  using Row = std::vector<float>;
  CHECK(elements(max_pool(x, 2)) == Row{2, 4, 6});
  CHECK(elements(max_pool(x, 2, {.ceil_mode = true})) == Row{2, 4, 6, 7});
  CHECK(elements(max_pool(x, 3, {.stride = 3, .padding = 1})) == Row{2, 5, 7});
  CHECK(elements(average_pool(x, 2, {.stride = 3, .padding = 1})) == Row{0.5, 3.5, 6.5});
  CHECK(elements(average_pool(x, 2, {.stride = 3, .padding = 1, .count_include_pad = false})) ==
        Row{1, 3.5, 6.5});
  // The last window begins inside and covers one element, one of the padding, and one after it.
  CHECK(elements(average_pool(x, 3, {.stride = 2, .padding = 0, .ceil_mode = true})) ==
        Row{2, 4, 6});
  CHECK(elements(average_pool(x, 4, {.stride = 3, .padding = 1, .ceil_mode = true})) ==
        Row{1.5, 4.5, 13.0f / 3});
  // A window that would begin in the padding after the input does not count.
  CHECK(elements(max_pool(row(tape, {1, 2, 3}), 2, {.stride = 4, .padding = 1, .ceil_mode = true}))
            .size() == 1);
  CHECK(elements(max_pool(x, 3, {.stride = 1, .dilation = 2})) == Row{5, 6, 7});
  CHECK(elements(max_pool(row(tape, {9, 1, 2, 8, 3, 4}), 2,
                          {.stride = 2, .padding = 1, .dilation = 2})) == Row{1, 8, 8});
  CHECK(elements(max_pool(row(tape, {9, 1, 2, 8, 3, 4}), 2,
                          {.stride = 3, .dilation = 2, .ceil_mode = true})) == Row{9, 8});
  // The axis is shorter than the dilation, but every window still covers an element of it.
  CHECK(elements(max_pool(row(tape, {1, 2}), 3, {.stride = 1, .padding = 3, .dilation = 3})) ==
        Row{1, 2});
  CHECK(elements(adaptive_average_pool(x, 3)) == Row{2, 4, 6});
  CHECK(elements(adaptive_max_pool(x, 2)) == Row{4, 7});
  CHECK(global_average_pool(x).shape() == Shape{1, 1, 1});
  CHECK(elements(global_max_pool(x)) == Row{7});
}

TEST_CASE("pooling with channels last is pooling with channels first") {
  Tape tape;
  const Var x = tape.parameter(Tensor::normal({2, 5, 6, 3}, 1));
  const Var first = tape.parameter(permute(x, {0, 3, 1, 2}).value());
  const auto check = [&](const Var& y, const Var& y_first) {
    CHECK(same_bits(permute(y, {0, 3, 1, 2}).value(), y_first.value()));
    CHECK(
        same_bits(permute(gradient(y, x), {0, 3, 1, 2}).value(), gradient(y_first, first).value()));
  };
  constexpr Channels last = Channels::last;
  check(max_pool(x, {2, 3}, {.padding = 1, .channels = last}),
        max_pool(first, {2, 3}, {.padding = 1}));
  check(average_pool(x, 2, {.stride = 1, .channels = last}), average_pool(first, 2, {.stride = 1}));
  check(adaptive_max_pool(x, {2, 4}, last), adaptive_max_pool(first, {2, 4}));
  check(adaptive_average_pool(x, {2, 4}, last), adaptive_average_pool(first, {2, 4}));
  check(global_max_pool(x, last), global_max_pool(first));
  CHECK(global_average_pool(x, last).shape() == Shape{2, 1, 1, 3});
}

TEST_CASE("max_pool takes the first of equal elements, and NaN before all") {
  Tape tape;
  const Var x = row(tape, {3, 3, -1, 3, 2, 3});
  CHECK(elements(gradient(max_pool(x, 3), x)) == std::vector<float>{1, 0, 0, 1, 0, 0});
  CHECK(elements(gradient(max_pool(x, 4, {.stride = 1}), x)) ==
        std::vector<float>{1, 1, 0, 1, 0, 0});

  const Var odd = row(tape, {5, nan, nan, 7});
  CHECK(std::isnan(elements(max_pool(odd, 4))[0]));
  CHECK(elements(gradient(max_pool(odd, 4), odd)) == std::vector<float>{0, 1, 0, 0});
}

TEST_CASE("lp_pool has its second derivative where an element is 0") {
  Tape tape;
  const Var x = tape.parameter(Tensor::from({3.0, 0.0, 4.0}, {1, 1, 3}));
  // y = |x|, with the Hessian (1 − x·xᵀ/y²)/y.
  const Tensor h = hessian(sum(lp_pool(x, 2, 3)), x);
  CHECK(std::abs(h.at(4) - 1.0 / 5) < 1e-15);
  CHECK(std::abs(h.at(2) + 12.0 / 125) < 1e-15);
}

TEST_CASE("pooling of an image is the loop over its windows") {
  Tape tape;
  const Shape shape{2, 2, 9, 8};
  const Tensor x = Tensor::normal(shape, 3);
  const Var image = tape.constant(x);
  const Tensor largest = max_pool(image, {3, 2}, {.stride = {2, 3}, .padding = 1}).value();
  const Tensor mean = average_pool(image, {3, 2}, {.stride = {2, 3}, .padding = 1}).value();
  REQUIRE(largest.shape() == Shape{2, 2, 5, 3});
  std::int64_t wrong = 0;
  std::int64_t index = 0;
  for (std::int64_t plane = 0; plane < 4; ++plane) {
    for (std::int64_t q = 0; q < 5; ++q) {
      for (std::int64_t r = 0; r < 3; ++r, ++index) {
        double best = -1e9, sum = 0;
        for (std::int64_t i = std::max<std::int64_t>(0, 2 * q - 1);
             i < std::min<std::int64_t>(9, 2 * q + 2); ++i) {
          for (std::int64_t j = std::max<std::int64_t>(0, 3 * r - 1);
               j < std::min<std::int64_t>(8, 3 * r + 1); ++j) {
            const double element = x.at((plane * 9 + i) * 8 + j);
            best = std::max(best, element);
            sum += element;
          }
        }
        wrong += largest.at(index) != best || std::abs(mean.at(index) - sum / 6) > 1e-6;
      }
    }
  }
  CHECK(wrong == 0);
}

/// A random axis in which no window covers only padding. It has as many elements as the windows
/// need, or some more.
struct RandomAxis {
  std::int64_t kernel = *rc::gen::inRange<std::int64_t>(1, 4);
  std::int64_t stride = *rc::gen::inRange<std::int64_t>(1, 4);
  std::int64_t dilation = *rc::gen::inRange<std::int64_t>(1, 3);
  std::int64_t span = (kernel - 1) * dilation + 1;
  std::int64_t padding = *rc::gen::inRange<std::int64_t>(0, span / 2 + 1);
  std::int64_t size = span + *rc::gen::inRange<std::int64_t>(0, 30);
};

TEST_CASE("max_pool, its adjoint and its pick are loops over windows, bit for bit") {
  rc::prop("any windows of odd numbers in any dtype", [] {
    const RandomAxis i, j;
    const auto dtype = *rc::gen::element(DType::f32, DType::f64, DType::f16, DType::bf16);
    const Shape shape{2, 2, i.size, j.size};
    const double odd[] = {nan, HUGE_VAL, -HUGE_VAL, 0.0, -0.0};
    const auto draw = [&](const Shape& of) {
      std::vector<double> elements(static_cast<std::size_t>(of.elements()));
      for (double& element : elements) {
        const int kind = *rc::gen::inRange(0, 16);
        element = kind < 5 ? odd[kind] : *rc::gen::inRange(-5, 5);
      }
      return Tensor::from(elements, of).to(dtype);
    };
    const Tensor image = draw(shape);
    const Tensor direction = draw(shape);
    Tape tape;
    const Var x = tape.parameter(image);
    const Var y = max_pool(x, {i.kernel, j.kernel},
                           {.stride = {i.stride, j.stride},
                            .padding = {i.padding, j.padding},
                            .dilation = {i.dilation, j.dilation}});
    const Var seed = tape.parameter(draw(y.shape()));
    const Var adjoint = vjp({&y, 1}, {&x, 1}, {&seed, 1})[0];
    const Var along = tape.parameter(direction);
    const Var picked = vjp({&adjoint, 1}, {&seed, 1}, {&along, 1})[0];

    std::vector<double> largest, taken;
    // 16-bit gradients are summed in f32.
    std::vector<double> sums(static_cast<std::size_t>(shape.elements()));
    const Tensor seeds = seed.value();
    const auto q = y.shape();
    for (std::int64_t plane = 0; plane < 4; ++plane) {
      for (std::int64_t a = 0; a < q[2]; ++a) {
        for (std::int64_t b = 0; b < q[3]; ++b) {
          std::int64_t best = -1;
          for (std::int64_t s = 0; s < i.kernel; ++s) {
            for (std::int64_t t = 0; t < j.kernel; ++t) {
              const std::int64_t row = a * i.stride - i.padding + s * i.dilation;
              const std::int64_t column = b * j.stride - j.padding + t * j.dilation;
              if (row < 0 || row >= i.size || column < 0 || column >= j.size) continue;
              const std::int64_t at = (plane * i.size + row) * j.size + column;
              const double most = best < 0 ? 0 : image.at(best);
              if (best < 0 || (most == most && !(image.at(at) <= most))) best = at;
            }
          }
          const double share = seeds.at(std::ssize(largest));
          largest.push_back(image.at(best));
          taken.push_back(direction.at(best));
          double& sum = sums[static_cast<std::size_t>(best)];
          sum = dtype == DType::f64 ? sum + share : static_cast<float>(sum) + float(share);
        }
      }
    }
    RC_ASSERT(same_bits(y.value(), Tensor::from(largest, q).to(dtype)));
    RC_ASSERT(same_bits(picked.value(), Tensor::from(taken, q).to(dtype)));
    const Tensor expected = Tensor::from(sums, shape);
    const Tensor narrow = dtype == DType::f64 ? expected : expected.to(DType::f32);
    // A compiler may swap the operands of a sum, so it decides which of two NaNs the sum keeps.
    const Tensor found = adjoint.value();
    const Tensor wanted = narrow.to(dtype);
    RC_ASSERT(found.dtype() == dtype);
    for (std::int64_t k = 0; k < wanted.elements(); ++k) {
      if (std::isnan(found.at(k)) && std::isnan(wanted.at(k))) continue;
      RC_ASSERT(same_number(found.at(k), wanted.at(k)));
    }
  });
}

TEST_CASE("pooling has the same bits at any thread count") {
  const tbb::global_control eight(tbb::global_control::max_allowed_parallelism, 8);
  const auto run = [](int threads) {
    return tbb::task_arena(threads).execute([] {
      Tape tape;
      const Var x = tape.parameter(Tensor::normal({6, 16, 40, 39}, 3));
      const Var y = max_pool(x, 3, {.stride = 1, .padding = 1, .dilation = 2}) +
                    average_pool(x, 3, {.stride = 1});
      return std::vector<Tensor>{y.value(), gradient(y * y, x).value()};
    });
  };
  const std::vector<Tensor> one = run(1);
  for (const int threads : {2, 8}) {
    const std::vector<Tensor> many = run(threads);
    for (std::size_t i = 0; i < one.size(); ++i) CHECK(same_bits(one[i], many[i]));
  }
}

TEST_CASE("pooling says what does not fit") {
  const struct {
    void (*call)(const Var&);
    const char* words;
  } cases[] = {
      {[](const Var& x) { max_pool(x, {5, 2}); },
       "[max_pool] kernel 5 is larger than an axis of input (2, 3, 4, 6) with padding 0"},
      {[](const Var& x) { average_pool(x, 3, {.padding = 2}); },
       "[average_pool] padding 2 is more than half of kernel 3"},
      {[](const Var& x) { max_pool(x, {1, 1, 1}); }, "kernel has 3 numbers for 2 spatial axes"},
      {[](const Var& x) { max_pool(x, 0); }, "kernel is 0; it must be at least 1"},
      {[](const Var& x) { max_pool(x, 2, {.stride = -1}); }, "stride is -1"},
      {[](const Var& x) { max_pool(x, 2, {.dilation = 0}); },
       "dilation is 0; it must be at least 1"},
      {[](const Var& x) { max_pool(x, 3, {.dilation = {1, 3}}); },
       "kernel 3 with dilation 3 is larger than an axis of input (2, 3, 4, 6)"},
      {[](const Var& x) { max_pool(x, 2, {.padding = 5, .dilation = 9}); },
       "kernel 2 with dilation 9 and padding 5 misses all elements of an axis of input (2, 3, 4, "
       "6)"},
      {[](const Var& x) { average_pool(x, std::int64_t{1} << 31); },
       "kernel is 2147483648; it must be at most 2147483647"},
      {[](const Var& x) { adaptive_average_pool(x, {2, 0}); }, "size is 0"},
      {[](const Var& x) { adaptive_max_pool(x.tape().parameter(Tensor::zeros({2, 3, 0})), 1); },
       "[adaptive_max_pool] input (2, 3, 0) has an axis of size 0"},
      {[](const Var& x) { global_max_pool(x.tape().parameter(Tensor::zeros({2, 3}))); },
       "[global_max_pool] input (2, 3) is not (batch, channels, 1 to 3 spatial axes)"},
      {[](const Var& x) { max_pool(x, {5, 2}, {.channels = Channels::last}); },
       "kernel 5 is larger than an axis of input (2, 3, 4, 6)"},
      {[](const Var& x) { max_pool(cast(x, DType::i32), 2); }, "takes floating dtypes, not i32"},
  };
  for (const auto& [call, words] : cases) {
    Tape tape;
    const Var x = tape.parameter(Tensor::zeros({2, 3, 4, 6}));
    CHECK_THAT(error_of([&, &f = call] { f(x); }), Contains(words) && Contains("pool_test.cpp"));
  }
}

}  // namespace
}  // namespace palimpsest::pool_test
