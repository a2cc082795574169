#include "autodiff/kernels/convolution.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include "tests/catch.h"
//
#include <rapidcheck.h>
#include <rapidcheck/catch.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "autodiff/kernels/kernels.h"

namespace palimpsest::convolution_test {
namespace {

using Geometry = ConvolutionGeometry;

Geometry sized(Geometry g) {
  for (std::size_t a = 0; a < 3; ++a) {
    g.output[a] =
        (g.input[a] + 2 * g.padding[a] - g.dilation[a] * (g.kernel[a] - 1) - 1) / g.stride[a] + 1;
  }
  return g;
}

/// x, w and y of one geometry, and the derivatives of Σ y·(w ∗ x) with respect to each of them.
template <class T>
struct Operands {
  std::vector<T> x, w, y;

  explicit Operands(const Geometry& g)
      : x(static_cast<std::size_t>(g.batch * g.channels * g.input_size())),
        w(static_cast<std::size_t>(g.results * (g.channels / g.groups) * g.taps())),
        y(static_cast<std::size_t>(g.batch * g.results * g.output_size())) {}
};

/// Calls f(index in x, index in w, index in y) for every product of the trilinear form.
template <class F>
void for_products(const Geometry& g, F f) {
  const std::int64_t channels = g.channels / g.groups;
  const std::int64_t results = g.results / g.groups;
  std::int64_t y = 0;
  for (std::int64_t b = 0; b < g.batch; ++b)
    for (std::int64_t o = 0; o < g.results; ++o)
      for (std::int64_t q0 = 0; q0 < g.output[0]; ++q0)
        for (std::int64_t q1 = 0; q1 < g.output[1]; ++q1)
          for (std::int64_t q2 = 0; q2 < g.output[2]; ++q2, ++y)
            for (std::int64_t c = 0; c < channels; ++c)
              for (std::int64_t t0 = 0; t0 < g.kernel[0]; ++t0)
                for (std::int64_t t1 = 0; t1 < g.kernel[1]; ++t1)
                  for (std::int64_t t2 = 0; t2 < g.kernel[2]; ++t2) {
                    const std::int64_t h0 = q0 * g.stride[0] - g.padding[0] + t0 * g.dilation[0];
                    const std::int64_t h1 = q1 * g.stride[1] - g.padding[1] + t1 * g.dilation[1];
                    const std::int64_t h2 = q2 * g.stride[2] - g.padding[2] + t2 * g.dilation[2];
                    if (h0 < 0 || h0 >= g.input[0] || h1 < 0 || h1 >= g.input[1] || h2 < 0 ||
                        h2 >= g.input[2])
                      continue;
                    const std::int64_t plane = b * g.channels + o / results * channels + c;
                    const std::int64_t x =
                        ((plane * g.input[0] + h0) * g.input[1] + h1) * g.input[2] + h2;
                    const std::int64_t tap = (t0 * g.kernel[1] + t1) * g.kernel[2] + t2;
                    f(static_cast<std::size_t>(x),
                      static_cast<std::size_t>((o * channels + c) * g.taps() + tap),
                      static_cast<std::size_t>(y));
                  }
}

std::vector<double> random_numbers(std::size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> distribution(-1, 1);
  std::vector<double> numbers(count);
  for (double& number : numbers) number = distribution(engine);
  return numbers;
}

template <class T>
std::vector<T> as(const std::vector<double>& numbers) {
  return std::vector<T>(numbers.begin(), numbers.end());
}

template <class T>
bool near(const std::vector<T>& a, const std::vector<double>& b, double tolerance) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [=](T x, double y) { return std::abs(x - y) <= tolerance; });
}

/// Provides exactly the requested workspace and checks that the memory after it is not overwritten.
template <class F>
void with_workspace(Bytes bytes, F f) {
  struct alignas(64) Line {
    unsigned char bytes[64];
  };
  std::vector<Line> lines(static_cast<std::size_t>(bytes / 64 + 2));
  auto* data = reinterpret_cast<std::byte*>(lines.data());
  std::fill(data, data + lines.size() * 64, std::byte{0xff});  // reads as NaN
  f(std::span(data, static_cast<std::size_t>(bytes)));
  const bool kept = std::all_of(data + bytes, data + lines.size() * 64,
                                [](std::byte b) { return b == std::byte{0xff}; });
  REQUIRE(kept);
}

template <class T>
Operands<T> computed(const Geometry& g, const Operands<T>& in, const std::vector<T>& bias,
                     int threads) {
  Operands<T> out(g);
  tbb::task_arena(threads).execute([&] {
    with_workspace(convolve_workspace<T>(g, threads), [&](auto space) {
      convolve(g, in.x.data(), in.w.data(), bias.data(), out.y.data(), space, threads);
    });
    with_workspace(convolve_transposed_workspace<T>(g, threads), [&](auto space) {
      convolve_transposed(g, in.y.data(), in.w.data(), static_cast<const T*>(nullptr), out.x.data(),
                          space, threads);
    });
    with_workspace(convolve_weight_workspace<T>(g, threads), [&](auto space) {
      convolve_weight(g, in.x.data(), in.y.data(), out.w.data(), space, threads);
    });
  });
  return out;
}

template <class T>
void check(const Geometry& g) {
  Operands<double> exact(g), in(g);
  in.x = random_numbers(in.x.size(), 1);
  in.w = random_numbers(in.w.size(), 2);
  in.y = random_numbers(in.y.size(), 3);
  const std::vector<double> bias = random_numbers(static_cast<std::size_t>(g.results), 4);
  for (std::size_t i = 0; i < exact.y.size(); ++i) {
    exact.y[i] = bias[i / static_cast<std::size_t>(g.output_size()) % bias.size()];
  }
  for_products(g, [&](std::size_t x, std::size_t w, std::size_t y) {
    exact.y[y] += in.w[w] * in.x[x];
    exact.x[x] += in.w[w] * in.y[y];
    exact.w[w] += in.y[y] * in.x[x];
  });

  Operands<T> operands(g);
  operands.x = as<T>(in.x);
  operands.w = as<T>(in.w);
  operands.y = as<T>(in.y);
  const Operands<T> one = computed(g, operands, as<T>(bias), 1);
  const double tolerance = sizeof(T) == 8 ? 1e-12 : 1e-4;
  INFO("batch " << g.batch << " channels " << g.channels << " results " << g.results << " groups "
                << g.groups);
  for (std::size_t a = 0; a < 3; ++a) {
    UNSCOPED_INFO("input " << g.input[a] << " kernel " << g.kernel[a] << " stride " << g.stride[a]
                           << " padding " << g.padding[a] << " dilation " << g.dilation[a]);
  }
  const bool agrees = near(one.y, exact.y, tolerance) && near(one.x, exact.x, tolerance) &&
                      near(one.w, exact.w, 10 * tolerance);
  REQUIRE(agrees);
  for (const int threads : {2, 7}) {
    const Operands<T> more = computed(g, operands, as<T>(bias), threads);
    const bool same = more.y == one.y && more.x == one.x && more.w == one.w;
    REQUIRE(same);
  }
}

/// The value at position `at` of a grid.
float read_at(const GridRead<float>& r, std::int64_t at) {
  std::int64_t index[3];
  for (std::size_t a = 3; a-- > 0; at /= r.axes[a].positions) {
    index[a] = at % r.axes[a].positions * r.axes[a].step + r.axes[a].base;
    if (index[a] < 0 || index[a] >= r.axes[a].source) return 0;
  }
  return r.source[(index[0] * r.axes[1].source + index[1]) * r.axes[2].source + index[2]];
}

TEST_CASE("reading a stretch of a grid is reading each of its positions") {
  rc::prop("and up to 64 bytes behind it are written", [] {
    GridRead<float> r{};
    const bool shifted = *rc::gen::arbitrary<bool>();  // rows have the layout of the source
    std::int64_t positions = 1, size = 1;
    for (std::size_t a = 0; a < 3; ++a) {
      GridAxis& axis = r.axes[a];
      axis.positions = *rc::gen::inRange<std::int64_t>(1, a == 2 ? 40 : 6);
      axis.step = shifted && a > 0 ? 1 : *rc::gen::inRange<std::int64_t>(1, 4);
      axis.source = shifted && a == 2 ? axis.positions : *rc::gen::inRange<std::int64_t>(1, 40);
      axis.base = *rc::gen::inRange<std::int64_t>(-4, 5) * (*rc::gen::inRange(0, 5) == 0 ? 9 : 1);
      positions *= axis.positions;
      size *= axis.source;
    }
    // The vector ends here, so that a sanitizer finds reads past the source.
    std::vector<float> source(static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<float>(i + 1);
    r.first = *rc::gen::inRange<std::int64_t>(0, positions);
    r.last = *rc::gen::inRange<std::int64_t>(r.first, positions) + 1;
    std::vector<float> target(static_cast<std::size_t>(r.last - r.first + 17), -1.0f);
    r.source = source.data();
    r.target = target.data();
    kernels().convolution<float>().read(r);
    for (std::int64_t at = r.first; at < r.last; ++at) {
      RC_ASSERT(target[static_cast<std::size_t>(at - r.first)] == read_at(r, at));
    }
    RC_ASSERT(target.back() == -1.0f);
  });
}

TEST_CASE("convolution kernels agree with loops over every product") {
  const tbb::global_control eight(tbb::global_control::max_allowed_parallelism, 8);
  std::mt19937 engine(5);
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine);
  };
  int checked = 0;
  while (checked < 150) {
    Geometry g;
    g.groups = pick(0, 2) == 0 ? pick(2, 5) : 1;
    g.channels = g.groups * pick(1, g.groups > 1 ? 3 : 20);
    g.results = g.groups * pick(1, g.groups > 1 ? 6 : 20);
    g.batch = pick(0, 4);
    const auto axes = static_cast<std::size_t>(pick(1, 3));
    for (std::size_t a = 3 - axes; a < 3; ++a) {
      g.input[a] = pick(1, axes == 1 ? 60 : axes == 2 ? 14 : 7);
      g.kernel[a] = pick(1, 4);
      g.stride[a] = pick(0, 1) == 0 ? 1 : pick(2, 4);
      g.padding[a] = pick(0, 3);
      g.dilation[a] = pick(0, 2) == 0 ? pick(2, 3) : 1;
    }
    g = sized(g);
    if (g.output[0] < 1 || g.output[1] < 1 || g.output[2] < 1) continue;
    check<float>(g);
    check<double>(g);
    ++checked;
  }
}

TEST_CASE("convolution kernels agree with loops where one block does not hold the work") {
  const tbb::global_control eight(tbb::global_control::max_allowed_parallelism, 8);
  const Geometry cases[] = {
      {.batch = 1,
       .channels = 3,
       .results = 7,
       .input = {1, 43, 41},
       .kernel = {1, 3, 3},
       .padding = {0, 1, 1}},
      {.batch = 2,
       .channels = 150,
       .results = 9,
       .input = {1, 17, 19},
       .kernel = {1, 3, 3},
       .padding = {0, 1, 1}},
      {.batch = 1,
       .channels = 2,
       .results = 20,
       .input = {1, 1, 5003},
       .kernel = {1, 1, 5},
       .padding = {0, 0, 2}},
      {.batch = 1, .channels = 5, .results = 8, .input = {1, 23, 45}, .kernel = {1, 1, 1}},
      {.batch = 2, .channels = 3, .results = 6, .input = {1, 1, 4613}, .kernel = {1, 1, 1}},
      {.batch = 90,
       .channels = 6,
       .results = 10,
       .input = {1, 4, 4},
       .kernel = {1, 3, 3},
       .padding = {0, 1, 1}},
      {.batch = 300, .channels = 4, .results = 5, .input = {1, 1, 1}, .kernel = {1, 1, 1}},
      {.batch = 3,
       .channels = 24,
       .results = 24,
       .groups = 24,
       .input = {1, 31, 29},
       .kernel = {1, 5, 5},
       .stride = {1, 2, 2},
       .padding = {0, 2, 2}},
      {.batch = 1,
       .channels = 2,
       .results = 3,
       .input = {9, 30, 31},
       .kernel = {3, 3, 3},
       .padding = {1, 1, 1}},
      {.batch = 1, .channels = 2, .results = 2, .input = {1, 50, 50}, .kernel = {1, 21, 21}},
      {.batch = 2,
       .channels = 20,
       .results = 100,
       .input = {1, 12, 12},
       .kernel = {1, 3, 3},
       .stride = {1, 3, 2},
       .padding = {0, 1, 1}},
  };
  for (const Geometry& g : cases) {
    check<float>(sized(g));
    check<double>(sized(g));
  }
}

}  // namespace
}  // namespace palimpsest::convolution_test
