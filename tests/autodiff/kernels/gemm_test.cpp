#include "autodiff/kernels/gemm.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "autodiff/kernels/kernels.h"
#include "autodiff/tensor.h"
#include "tests/catch.h"

namespace gemm_test {

using namespace palimpsest;

namespace {

/// Random numbers that depend on the arguments only.
template <class T>
std::vector<T> numbers(std::int64_t n, std::uint64_t seed) {
  const Tensor tensor = Tensor::uniform({n}, seed, -1, 1, dtype_of<T>());
  const std::span<T> data = tensor.data<T>();
  return {data.begin(), data.end()};
}

/// Whether the kernels have products of T.
template <class T>
bool is_there() {
  return !std::is_same_v<T, BFloat16> || multiplies_bf16();
}

template <class T>
double as_double(T x) {
  return static_cast<double>(static_cast<SumOf<T>>(x));
}

template <class T>
double naive(const Gemm<T>& p, std::int64_t i, std::int64_t j) {
  double sum = 0;
  for (std::int64_t l = 0; l < p.k; ++l) {
    const T a = p.transpose_a ? p.a[l * p.lda + i] : p.a[i * p.lda + l];
    const T b = p.transpose_b ? p.b[j * p.ldb + l] : p.b[l * p.ldb + j];
    sum += as_double(a) * as_double(b);
  }
  return static_cast<double>(p.alpha) * sum;
}

/// One product whose operands and result have gaps of `gap` elements after each row.
template <class T>
struct Case {
  using Sum = SumOf<T>;
  std::vector<T> a, b;
  std::vector<Sum> before, c;
  Gemm<T> product;

  Case(std::int64_t m, std::int64_t n, std::int64_t k, int flags, std::int64_t gap)
      : product{.transpose_a = (flags & 1) != 0,
                .transpose_b = (flags & 2) != 0,
                .m = m,
                .n = n,
                .k = k,
                .ldc = n + gap,
                .accumulate = (flags & 4) != 0,
                .alpha = static_cast<Sum>(gap == 0 ? 1 : -0.5)} {
    product.lda = (product.transpose_a ? m : k) + gap;
    product.ldb = (product.transpose_b ? k : n) + gap;
    a = numbers<T>((product.transpose_a ? k : m) * product.lda, 1);
    b = numbers<T>((product.transpose_b ? n : k) * product.ldb, 2);
    before = numbers<Sum>(m * product.ldc, 3);
    product.a = a.data();
    product.b = b.data();
  }

  void run(int threads) {
    c = before;
    product.c = c.data();
    const Bytes bytes = parallel_gemm_workspace<T>(product.m, product.n, product.k, threads);
    const Buffer workspace = allocate_buffer(bytes);
    tbb::task_arena(threads).execute(
        [&] { gemm(product, {workspace.get(), static_cast<std::size_t>(bytes)}); });
  }

  /// The largest error relative to the rounding allowance; infinite when a gap was overwritten.
  double error() const {
    const double scale = (static_cast<double>(product.k) + 8) * std::numeric_limits<Sum>::epsilon();
    double worst = 0;
    for (std::int64_t i = 0; i < product.m; ++i) {
      for (std::int64_t j = 0; j < product.ldc; ++j) {
        const auto at = static_cast<std::size_t>(i * product.ldc + j);
        const double old = product.accumulate || j >= product.n ? before[at] : 0;
        const double right = old + (j < product.n ? naive(product, i, j) : 0);
        if (j >= product.n && c[at] != before[at]) return INFINITY;
        worst = std::max(worst, std::abs(static_cast<double>(c[at]) - right) / scale);
      }
    }
    return worst;
  }
};

struct Sizes {
  std::int64_t m, n, k;
};

}  // namespace

TEMPLATE_TEST_CASE("products of all shapes and transposes equal plain loops", "[gemm]", float,
                   double, BFloat16) {
  if (!is_there<TestType>()) return;
  const Sizes sizes = GENERATE(values<Sizes>({
      {0, 3, 2},      {3, 0, 2},      {3, 2, 0},      {1, 1, 1},     {1, 1, 700},    {1, 5, 3},
      {5, 1, 3},      {1, 40, 1000},  {700, 1, 33},   {1, 700, 33},  {2, 2, 2},      {3, 5, 7},
      {16, 16, 16},   {16, 16, 17},   {2, 300, 100},  {300, 2, 100}, {17, 31, 257},  {63, 65, 64},
      {129, 33, 300}, {33, 241, 130}, {300, 257, 70}, {2, 2, 5000},  {7, 47, 383},   {8, 48, 384},
      {9, 49, 385},   {10, 145, 770}, {17, 481, 40},  {33, 961, 20}, {24, 337, 257}, {12, 600, 390},
      {481, 17, 30},  {500, 32, 520}, {200, 9, 400},  {3, 200, 300}, {961, 33, 20},  {16, 64, 1},
      {64, 192, 8},   {1, 128, 32},   {1, 176, 127},  {1, 64, 128},  {19, 37, 1},
  }));
  const std::int64_t gap = GENERATE(0, 3);
  for (int flags = 0; flags < 8; ++flags) {
    CAPTURE(sizes.m, sizes.n, sizes.k, gap, flags);
    Case<TestType> one(sizes.m, sizes.n, sizes.k, flags, gap);
    one.run(1);
    CHECK(one.error() <= 1);
  }
}

TEMPLATE_TEST_CASE("a product of depth one has the bits of a deeper one with zeros", "[gemm]",
                   float, double) {
  constexpr std::int64_t m = 19;
  constexpr std::int64_t n = 37;
  const std::vector<TestType> column = numbers<TestType>(m, 1);
  std::vector<TestType> row = numbers<TestType>(n, 2);
  const std::vector<TestType> addend = numbers<TestType>(m * n, 3);
  std::vector<TestType> wide(2 * m);  // each number is followed by 0
  for (std::size_t i = 0; i < m; ++i) wide[2 * i] = column[i];
  row.resize(2 * n);  // a second row of zeros
  for (const bool adds : {false, true}) {
    CAPTURE(adds);
    std::vector<TestType> found[2];
    for (const std::int64_t k : {1, 2}) {
      std::vector<TestType>& c = found[k - 1];
      c.resize(m * n);
      const Bytes bytes = parallel_gemm_workspace<TestType>(m, n, k, 1);
      const Buffer workspace = allocate_buffer(bytes);
      const Gemm<TestType> product{.m = m,
                                   .n = n,
                                   .k = k,
                                   .a = k == 1 ? column.data() : wide.data(),
                                   .lda = k,
                                   .b = row.data(),
                                   .ldb = n,
                                   .c = c.data(),
                                   .ldc = n,
                                   .addend = adds ? addend.data() : nullptr};
      gemm(product, {workspace.get(), static_cast<std::size_t>(bytes)});
    }
    CHECK(found[0] == found[1]);
  }
}

TEMPLATE_TEST_CASE("an element's bits come from its row and its column alone", "[gemm]", float,
                   double, BFloat16) {
  if (!is_there<TestType>()) return;
  const Sizes sizes = GENERATE(values<Sizes>({{40, 700, 500},
                                              {700, 40, 500},
                                              {60, 60, 800},
                                              {120, 120, 10},
                                              {100, 90, 17},
                                              {80, 70, 32},
                                              {70, 90, 1}}));
  const Sizes part = GENERATE(values<Sizes>({{2, 35, 0}, {9, 11, 0}, {33, 17, 0}, {40, 2, 0}}));
  if (!has_own_products<TestType>()) return;
  const bool small = GENERATE(false, true);  // only if α is 1
  const std::int64_t row = 5;
  const std::int64_t column = 21;
  for (int flags = 0; flags < 4; ++flags) {
    CAPTURE(sizes.m, sizes.n, sizes.k, part.m, part.n, flags, small);
    Case<TestType> all(sizes.m, sizes.n, sizes.k, flags, 3);
    if (small) all.product.alpha = 1;
    all.run(1);
    Case<TestType> few = all;
    Gemm<TestType>& p = few.product;
    p.m = std::min(part.m, sizes.m - row);
    p.n = std::min(part.n, sizes.n - column);
    p.a += row * (p.transpose_a ? 1 : p.lda);
    p.b += column * (p.transpose_b ? p.ldb : 1);
    few.run(1);
    for (std::int64_t i = 0; i < p.m; ++i) {
      const auto* whole = &all.c[static_cast<std::size_t>((row + i) * p.ldc + column)];
      const auto* cut = &few.c[static_cast<std::size_t>(i * p.ldc)];
      CHECK(std::equal(cut, cut + p.n, whole));
    }
  }
}

TEMPLATE_TEST_CASE("small products have the bits of tiles", "[gemm]", float, double) {
  const Sizes sizes = GENERATE(values<Sizes>({
      {1, 5, 3},    {1, 40, 7},   {1, 3, 70},   {1, 37, 100}, {6, 1, 11},   {33, 1, 20},
      {70, 1, 127}, {2, 2, 2},    {3, 3, 30},   {3, 5, 7},    {4, 5, 16},   {9, 7, 10},
      {10, 10, 10}, {16, 17, 32}, {17, 31, 20}, {20, 50, 33}, {40, 24, 32}, {2, 3, 100},
      {9, 30, 1},   {30, 3, 1},   {3, 129, 1},  {5, 140, 1},  {8, 2, 300},  {100, 6, 12},
  }));
  for (int flags = 0; flags < 4; ++flags) {
    for (const std::int64_t gap : {0, 3}) {
      CAPTURE(sizes.m, sizes.n, sizes.k, flags, gap);
      Case<TestType> one(sizes.m, sizes.n, sizes.k, flags, gap);
      one.product.alpha = 1;
      one.run(1);
      CHECK(one.error() < 1);
      if (sizes.m == 1 || sizes.n == 1 || sizes.m + sizes.n + sizes.k < 20) continue;
      // Tiles compute what is added to C. Zeros may differ in their sign.
      Case<TestType> tile(sizes.m, sizes.n, sizes.k, flags | 4, gap);
      tile.product.alpha = 1;
      std::fill(tile.before.begin(), tile.before.end(), TestType(0));
      tile.run(1);
      for (std::int64_t i = 0; i < sizes.m; ++i) {
        const auto row = i * one.product.ldc;
        CHECK(std::equal(one.c.begin() + row, one.c.begin() + row + sizes.n, tile.c.begin() + row));
      }
    }
  }
}

TEMPLATE_TEST_CASE("an addend is added to what the product is without it", "[gemm]", float, double,
                   BFloat16) {
  if (!is_there<TestType>()) return;
  using Sum = SumOf<TestType>;
  const tbb::global_control eight(tbb::global_control::max_allowed_parallelism, 8);
  const Sizes sizes = GENERATE(values<Sizes>({
      {3, 5, 0},       {1, 1, 1},       {1, 40, 1000},  {700, 1, 33},    {3, 5, 7},
      {17, 31, 257},   {9, 49, 385},    {10, 145, 770}, {33, 961, 20},   {256, 1024, 32},
      {32, 1024, 256}, {481, 17, 30},   {500, 32, 520}, {33, 40, 30000}, {2, 3, 300000},
      {32, 128, 1},    {17, 40'000, 1}, {3000, 17, 1},  {2, 70'000, 16}, {2, 70'000, 15},
      {1, 128, 32},    {1, 32, 112},    {1, 48, 128},   {1, 33, 64},     {1, 20'000, 96},
      {17, 19, 9},     {20, 37, 16},    {12, 21, 8},    {1, 64, 7},
  }));
  const std::int64_t gap = GENERATE(0, 3);
  const bool vanishing = GENERATE(false, true);
  bool in_place = false;
  for (int flags = 0; flags < 8; ++flags) {
    CAPTURE(sizes.m, sizes.n, sizes.k, gap, vanishing, flags);
    Case<TestType> one(sizes.m, sizes.n, sizes.k, flags, gap);
    one.product.alpha = 1;
    auto addend = numbers<Sum>(sizes.m * one.product.ldc, 4);
    if (vanishing) {  // sums zeros of both signs
      for (TestType& x : one.a)
        x = static_cast<TestType>(std::copysign(Sum(0), static_cast<Sum>(x)));
      std::fill(addend.begin(), addend.end(), Sum(-0.0));
      if ((flags & 4) != 0) one.before = addend;
    }
    one.run(1);
    std::vector<Sum> expected = one.c;
    for (std::int64_t i = 0; i < sizes.m; ++i) {
      for (std::int64_t j = 0; j < sizes.n; ++j) {
        const auto at = static_cast<std::size_t>(i * one.product.ldc + j);
        expected[at] += addend[at];
      }
    }
    const auto check = [&] {
      for (const int threads : {1, 2, 4}) {
        one.run(threads);
        CHECK(std::memcmp(expected.data(), one.c.data(), expected.size() * sizeof(Sum)) == 0);
      }
    };
    one.product.addend = addend.data();
    check();
    if (flags >= 4 || !gemm_batch_adds_in_place<Sum>(sizes.m, sizes.n, sizes.k, 1, 1)) continue;
    if (!std::is_same_v<TestType, Sum>) continue;
    in_place = true;
    for (std::int64_t i = 0; i < sizes.m; ++i) {
      const auto row = i * one.product.ldc;
      std::copy_n(addend.begin() + row, sizes.n, one.before.begin() + row);
    }
    one.product.addend = one.c.data();
    check();
  }
  if (!std::is_same_v<TestType, Sum>) return;
  const bool deep = sizes.k > (sizeof(TestType) == 4 ? 384 : 256);
  const bool packed = std::min(sizes.m, sizes.n) + 2 + sizes.k >= 20;
  const bool short_row = sizes.m == 1 && sizes.n % 16 == 0 && sizes.k < 128;
  const bool once = sizes.n > 1 && sizes.k > 0 && (short_row || (sizes.m > 1 && packed && !deep));
  CHECK(in_place == (has_own_products<TestType>() && once));
}

TEMPLATE_TEST_CASE("the address of a result has no influence on its bits", "[gemm]", float,
                   double) {
  // States of a loop lie at any multiple of their elements' size.
  const Sizes sizes = GENERATE(values<Sizes>({
      {3, 5, 4},
      {2, 9, 3},
      {7, 7, 5},
      {1, 11, 4},
      {9, 1, 6},
      {1, 128, 32},
      {33, 19, 1},
      {20, 17, 9},
  }));
  for (int flags = 0; flags < 8; ++flags) {
    CAPTURE(sizes.m, sizes.n, sizes.k, flags);
    Case<TestType> one(sizes.m, sizes.n, sizes.k, flags, 0);
    one.run(1);
    const std::size_t elements = one.c.size();
    std::vector<TestType> room(elements + 16);
    for (std::size_t offset = 0; offset < 16; ++offset) {
      TestType* const to = room.data() + offset;
      std::copy(one.before.begin(), one.before.end(), to);
      one.product.c = to;
      const Bytes bytes = gemm_workspace<TestType>(sizes.m, sizes.n, sizes.k);
      const Buffer workspace = allocate_buffer(bytes);
      gemm_serial(one.product, {workspace.get(), static_cast<std::size_t>(bytes)});
      CHECK(std::memcmp(to, one.c.data(), elements * sizeof(TestType)) == 0);
    }
  }
}

TEMPLATE_TEST_CASE("products have the same bits at any thread count", "[gemm]", float, double,
                   BFloat16) {
  if (!is_there<TestType>()) return;
  const tbb::global_control eight(tbb::global_control::max_allowed_parallelism, 8);
  const Sizes sizes = GENERATE(values<Sizes>({
      {400, 300, 200},
      {1100, 70, 90},
      {65, 1025, 80},
      {1, 3000, 700},
      {3000, 1, 700},
      {33, 40, 30000},
      {2, 3, 300000},
      {8, 1024, 400},
      {2000, 16, 400},
      {32, 900, 513},
  }));
  for (int flags = 0; flags < 8; ++flags) {
    CAPTURE(sizes.m, sizes.n, sizes.k, flags);
    Case<TestType> product(sizes.m, sizes.n, sizes.k, flags, 0);
    product.run(1);
    const auto alone = product.c;
    if (flags < 4) CHECK(product.error() <= 1);
    for (const int threads : {2, 3, 8}) {
      product.run(threads);
      CHECK(std::memcmp(alone.data(), product.c.data(), alone.size() * sizeof(alone[0])) == 0);
    }
  }
}

TEST_CASE("a batch is its products, and its sums their sums in order", "[gemm]") {
  const tbb::global_control eight(tbb::global_control::max_allowed_parallelism, 8);
  // Many small products and few large ones; y[i, j] += Σₜ a[i, t]·b[t, j].
  const Sizes sizes = GENERATE(
      values<Sizes>({{3, 4, 5}, {200, 150, 64}, {1, 4, 2}, {20, 1, 30000}, {20, 20, 900}}));
  const auto [m, n, k] = sizes;
  const std::int64_t terms = GENERATE(0, 1, 3);
  const auto a = numbers<float>(3 * 3 * m * k, 1);
  const auto b = numbers<float>(3 * 2 * k * n, 2);
  const BatchAxis outputs[] = {{3, 3 * m * k, 0, 2 * m * n}, {2, 0, k * n, m * n}};
  const BatchAxis sums[] = {{terms, m * k, 2 * k * n, 0}};
  std::vector<float> expected(static_cast<std::size_t>(6 * m * n), 1.0f);
  Gemm<float> product{.m = m, .n = n, .k = k, .lda = k, .ldb = n, .ldc = n};
  for (std::int64_t i = 0; i < 3; ++i) {
    for (std::int64_t j = 0; j < 2; ++j) {
      for (std::int64_t t = 0; t < terms; ++t) {
        product.a = a.data() + (i * 3 + t) * m * k;
        product.b = b.data() + (t * 2 + j) * k * n;
        for (std::int64_t r = 0; r < m; ++r) {
          for (std::int64_t s = 0; s < n; ++s) {
            expected[static_cast<std::size_t>(((i * 2 + j) * m + r) * n + s)] +=
                static_cast<float>(naive(product, r, s));
          }
        }
      }
    }
  }
  std::vector<float> alone;
  for (const int threads : {1, 2, 5}) {
    std::vector<float> c(expected.size(), 1.0f);
    product.a = a.data();
    product.b = b.data();
    product.c = c.data();
    product.accumulate = true;
    const Bytes bytes = gemm_batch_workspace<float>(m, n, k, 6, terms, threads);
    const Buffer workspace = allocate_buffer(bytes);
    tbb::task_arena(threads).execute([&] {
      gemm_batch(product, outputs, sums, {workspace.get(), static_cast<std::size_t>(bytes)});
    });
    if (alone.empty()) alone = c;
    CHECK(c == alone);
  }
  float worst = 0;
  for (std::size_t i = 0; i < alone.size(); ++i) {
    worst = std::max(worst, std::abs(alone[i] - expected[i]));
  }
  CHECK(worst < 1e-6f * static_cast<float>(k + 8));
}

TEST_CASE("products of bf16 take subnormal numbers for 0 and keep what is not finite", "[gemm]") {
  if (!multiplies_bf16()) return;
  const auto product = [](float x, float y, std::int64_t k) {
    Case<BFloat16> one(3, 5, k, 0, 0);
    std::fill(one.a.begin(), one.a.end(), BFloat16(x));
    std::fill(one.b.begin(), one.b.end(), BFloat16(y));
    one.run(1);
    CHECK(std::memcmp(&one.c.front(), &one.c.back(), sizeof(float)) == 0);
    return one.c.front();
  };
  for (const std::int64_t k : {1, 2, 7, 800, 1601}) {
    CAPTURE(k);
    CHECK(product(1e-39f, 1e30f, k) == 0);
    CHECK(product(0x1p-64f, 0x1p-64f, k) == 0);
    CHECK(product(1e30f, 1e30f, k) == INFINITY);
    CHECK(product(-INFINITY, 2, k) == -INFINITY);
    CHECK(std::isnan(product(INFINITY, 0, k)));
    CHECK(std::isnan(product(NAN, 1, k)));
  }
}

// Runs only in builds that use oneDNN.
TEST_CASE("oneDNN makes the products of f32", "[.onednn]") {
  REQUIRE(kernels().product_library != nullptr);
  CHECK(std::string_view(kernels().product_library) == "onednn");
  CHECK_FALSE(has_own_products<float>());
  CHECK(has_own_products<double>());
}

TEST_CASE("the level is at most the one that is asked for", "[gemm]") {
  const std::string_view level = kernels().level;
  CHECK(multiplies_bf16() == (level == "v4_bf16"));
  const char* wish = std::getenv("PALIMPSEST_KERNELS");
  if (wish == nullptr) return;
  const std::string_view levels[] = {"base", "v3", "v4", "v4_bf16"};
  const auto place = [&](std::string_view name) {
    return std::find(std::begin(levels), std::end(levels), name) - std::begin(levels);
  };
  REQUIRE(place(wish) < 4);
  CHECK(place(level) <= place(wish));
}

}  // namespace gemm_test
