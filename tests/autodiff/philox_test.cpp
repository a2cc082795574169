#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <array>
#include <cmath>

#include "autodiff/philox.h"
#include "autodiff/tensor.h"
#include "tests/catch.h"

namespace palimpsest::philox_test {
namespace {

using Words = std::array<std::uint32_t, 4>;
using Key = std::array<std::uint32_t, 2>;

// Philox 4×32-10 as in the paper (Salmon et al., 2011), implemented independently to check how the
// library uses it.
Words philox(Words counter, Key key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {
        static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

TEST_CASE("the generator gives the published answers") {
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("streams are the generator keyed by seed, generation and node") {
  const auto [seed, generation, node] =
      GENERATE(table<std::uint64_t, std::uint32_t, std::uint32_t>({
          {0, 0, 0},
          {0x123456789abcdef0, 0, 0},
          {7, 3, 0},
          {7, 0, 3},
          {7, 0xffffffff, 1000000},
      }));
  const Key key = {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
  std::vector<float> narrow(4099);
  std::vector<double> wide(4099);
  fill_uniform({seed, generation, node}, narrow.data(), 4099);
  fill_uniform({seed, generation, node}, wide.data(), 4099);
  for (const std::uint32_t i : {0u, 1u, 2u, 3u, 4u, 4097u, 4098u}) {
    const Words four = philox({i / 4, 0, node, generation}, key);
    CHECK(narrow[i] == static_cast<float>(four[i % 4] >> 8) * 0x1p-24f);
    const Words two = philox({i / 2, 0, node, generation}, key);
    const std::uint64_t word = (std::uint64_t{two[i % 2 * 2]} << 32) | two[i % 2 * 2 + 1];
    CHECK(wide[i] == static_cast<double>(word >> 11) * 0x1p-53);
  }
}

TEST_CASE("a stream is the same at any number of threads") {
  const tbb::global_control eight(tbb::global_control::max_allowed_parallelism, 8);
  const auto made = [](int threads) {
    return tbb::task_arena(threads).execute([] {
      return std::array{Tensor::normal({100003}, 3), Tensor::uniform({100003}, 3, 0, 1, DType::f64),
                        Tensor::normal({50001}, 4, 0, 1, DType::f64)};
    });
  };
  const auto one = made(1);
  for (const int threads : {2, 8}) {
    const auto many = made(threads);
    for (std::size_t i = 0; i < one.size(); ++i) CHECK(same_bits(one[i], many[i]));
  }
}

TEST_CASE("normal numbers have the moments they should") {
  const std::int64_t n = 200000;
  std::vector<float> x(static_cast<std::size_t>(n));
  fill_normal({11, 0, 0}, x.data(), n);
  double moments[4] = {};
  for (const float element : x) {
    double power = 1;
    for (double& moment : moments) moment += (power *= element) / static_cast<double>(n);
  }
  CHECK_THAT(moments[0], Catch::Matchers::WithinAbs(0, 0.01));
  CHECK_THAT(moments[1], Catch::Matchers::WithinAbs(1, 0.02));
  CHECK_THAT(moments[2], Catch::Matchers::WithinAbs(0, 0.05));
  CHECK_THAT(moments[3], Catch::Matchers::WithinAbs(3, 0.1));
}

}  // namespace
}  // namespace palimpsest::philox_test
