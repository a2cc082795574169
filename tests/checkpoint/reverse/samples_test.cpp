#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "autodiff/error.h"
#include "tests/catch.h"
#include "tests/checkpoint/reverse/chains.h"
#include "tests/error_of.h"

namespace reverse_samples_test {

using namespace palimpsest;
using namespace palimpsest::tests;

namespace {

std::vector<std::byte> bytes_of(const StoredObject& object) {
  std::vector<std::byte> bytes;
  object.save([&](std::span<const std::byte> piece) {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  });
  return bytes;
}

/// Rows of numbers; there is one more after each step.
using Rows = std::vector<Numbers>;

ReverseFunctions<Rows, Numbers> growing_rows() {
  return {.advance =
              [](Rows& rows, std::uint64_t) {
                rows[0][0] = std::sin(rows[0][0]);
                rows.emplace_back();
              },
          .reverse =
              [](Rows& rows, Numbers& adjoint, std::uint64_t step) {
                CHECK(rows.size() == step + 1);
                adjoint[0] *= std::cos(rows[0][0]);
              },
          .seed = [](Rows&) { return Numbers{1}; }};
}

}  // namespace

TEST_CASE("reverse, samples: a chain of any length has an estimate of its error") {
  std::vector<std::uint64_t> without;
  for (const bool is_known : {true, false}) {
    for (std::uint64_t steps = 6; steps <= 400; ++steps) {
      ReverseOptions options{.memory_budget = 1_MiB, .codec = ReverseCodec::half};
      if (is_known) options.steps = steps;
      if (found_by_driver(steps, 2, options).report.errors.empty()) without.push_back(steps);
    }
  }
  CHECK(without == std::vector<std::uint64_t>());
}

TEST_CASE("reverse, samples: their steps are calls of advance") {
  Row row{.steps = 100};
  ReverseDriver driver(row.functions(), {.steps = 100, .codec = ReverseCodec::half});
  Numbers u = row.start(8);
  driver.run(u);
  CHECK(driver.report().steps_advanced == row.advanced);
  CHECK(row.advanced > 100 + driver.report().steps_advanced_again);
}

TEST_CASE("reverse, samples: objects that grow while steps are reversed") {
  for (const std::uint64_t steps : {20, 90}) {
    Row row{.steps = steps};
    Numbers history;  // of the adjoints
    ReverseFunctions<Numbers> functions = row.functions();
    functions.reverse = [&](Numbers& u, Numbers& adjoint, std::uint64_t n) {
      row.reverse(u, adjoint, n);
      history.insert(history.end(), 10, adjoint[0]);
    };
    functions.accumulated.insert(functions.accumulated.begin(), named("history", history));
    ReverseDriver driver(functions, {.steps = steps, .codec = ReverseCodec::half});
    Numbers u = row.start(6);
    const std::optional<Numbers> adjoint = driver.run(u);
    CHECK(history.size() == 10 * steps);
    CHECK(history.back() == adjoint->front());
    CHECK(std::abs(row.loss - plainly(steps, 6).loss) < 1e-5);
    for (const ObjectError& error : driver.report().errors) {
      CAPTURE(steps, error.name, error.error, error.norm);
      CHECK(error.relative() < 1e-4);
    }
    CHECK(driver.report().errors.size() == 4);
  }
}

TEST_CASE("reverse: a state of few ranges takes the place of one of many") {
  Rows few{{}, {}};
  const std::vector<std::byte> bytes = bytes_of(*stored(few));
  Rows many(9, Numbers{1});
  const auto load = [&](std::size_t size) {
    std::span<const std::byte> from(bytes);
    stored(many)->load(static_cast<Bytes>(size), [&](std::span<std::byte> piece) {
      REQUIRE(piece.size() <= from.size());
      std::memcpy(piece.data(), from.data(), piece.size());
      from = from.subspan(piece.size());
    });
  };
  load(bytes.size());
  CHECK(many == few);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK_THROWS_AS(load(size), ArgumentError);

  Rows rows{{0.5}};
  ReverseOptions options{.steps = 40, .memory_budget = 20_KiB, .sizes_change = true};
  const std::optional<Numbers> adjoint = ReverseDriver(growing_rows(), options).run(rows);
  double expected = 1;
  double u = 0.5;
  for (int n = 0; n < 40; ++n) {
    expected *= std::cos(u);
    u = std::sin(u);
  }
  CHECK(std::abs(adjoint->front() - expected) < 1e-14);
  options.codec = ReverseCodec::half;
  options.largest_state = 400;
  options.memory_budget = 1_MiB;
  rows = {{0.5}};
  check_error([&] { ReverseDriver(growing_rows(), options).run(rows); },
              {"another number of ranges than state 0", "samples_test.cpp"});
  options.largest_state = 0;
  check_error([&] { ReverseDriver(growing_rows(), options).run(rows); }, {"set largest_state too"});
}

TEST_CASE("reverse: objects with save and load take their bytes twice for a while") {
  Numbers numbers(5);
  const std::function<std::vector<std::byte>(const Numbers&)> save = [](const Numbers& x) {
    const auto bytes = std::as_bytes(std::span(x));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  const std::function<Numbers(std::span<const std::byte>)> load;
  CHECK(detail::ObjectByFunctions<Numbers>(numbers, save, load).workspace() == 80);
}

}  // namespace reverse_samples_test
