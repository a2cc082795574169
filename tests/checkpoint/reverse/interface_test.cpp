#include <cmath>
#include <cstring>
#include <list>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "autodiff/error.h"
#include "tests/catch.h"
#include "tests/checkpoint/reverse/chains.h"
#include "tests/error_of.h"
#include "tests/temporary_directory.h"

namespace reverse_interface_test {

using namespace palimpsest;
using namespace palimpsest::tests;

namespace {

constexpr std::uint64_t steps = 50;

/// A state of two blocks and a number, which names its parts.
struct Fields {
  Numbers pressure;
  std::vector<Numbers> velocity;
  int count = 0;

  auto parts() { return std::tie(pressure, velocity, count); }
};

/// The same chain as `Row`, on states of another type. `row_in` is the row of numbers in a state.
template <class State, class RowIn>
std::optional<Numbers> by_driver(State& state, RowIn row_in, Row& row, ReverseOptions options,
                                 ReverseFunctions<State, Numbers> functions = {}) {
  functions.advance = [&](State& s, std::uint64_t n) {
    Numbers u(row_in(s).begin(), row_in(s).end());
    row.advance(u, n);
    std::ranges::copy(u, row_in(s).begin());
  };
  functions.reverse = [&](State& s, Numbers& a, std::uint64_t n) {
    row.reverse(Numbers(row_in(s).begin(), row_in(s).end()), a, n);
  };
  functions.seed = [&](State& s) { return row.seed(Numbers(row_in(s).begin(), row_in(s).end())); };
  options.steps = steps;
  options.memory_budget = options.codec == ReverseCodec::none ? 128_KiB : 2_MiB;
  return ReverseDriver(functions, options).run(state);
}

/// A row that grows by a number at every third step, as a history does.
struct Growing {
  std::uint64_t steps = 100;
  std::uint64_t advanced = 0;

  void advance(Numbers& u, std::uint64_t step) {
    ++advanced;
    for (std::size_t i = 0; i + 1 < u.size(); ++i) u[i] = std::sin(u[i] + 0.3 * u[i + 1]);
    if (step % 3 == 0) u.push_back(0.1 * u[0]);
  }
  void reverse(const Numbers& u, Numbers& adjoint, std::uint64_t step) {
    Numbers next = std::exchange(adjoint, Numbers(u.size()));
    if (step % 3 == 0) {
      next[0] += 0.1 * next.back();
      next.pop_back();
    }
    adjoint.back() += next.back();
    for (std::size_t i = 0; i + 1 < u.size(); ++i) {
      const double slope = next[i] * std::cos(u[i] + 0.3 * u[i + 1]);
      adjoint[i] += slope;
      adjoint[i + 1] += 0.3 * slope;
    }
  }
  Numbers plain(const Numbers& start) {
    std::vector<Numbers> states{start};
    for (std::uint64_t n = 0; n < steps; ++n) {
      states.push_back(states.back());
      advance(states.back(), n);
    }
    Numbers adjoint = states.back();
    for (std::uint64_t n = steps; n > 0; --n) reverse(states[n - 1], adjoint, n - 1);
    return adjoint;
  }
  ReverseFunctions<Numbers> functions() {
    return {.advance = [this](Numbers& u, std::uint64_t n) { advance(u, n); },
            .reverse = [this](Numbers& u, Numbers& a, std::uint64_t n) { reverse(u, a, n); },
            .seed = [](Numbers& u) { return u; }};
  }
};

void check_options_error(ReverseOptions options, const char* words) {
  check_error([&] { found_by_driver(steps, 3, std::move(options)); }, {"reverse", words});
}

}  // namespace

TEST_CASE("reverse: states of many types") {
  const TemporaryDirectory directory;
  const Found expected = plainly(steps, 6);
  ReverseOptions options;
  SECTION("in memory") {}
  SECTION("on disk") {
    options.spill = directory.path();
    options.disk_costs = DiskCosts{0, 0};
  }
  SECTION("compressed") { options.codec = ReverseCodec::zstd; }
  const auto check = [&](auto state, auto row_in, auto... functions) {
    Row row{.steps = steps};
    std::ranges::copy(row.start(6), row_in(state).begin());
    const auto adjoint = by_driver(state, row_in, row, options, functions...);
    CHECK(Found{adjoint, row.loss, row.gradient, {}} == expected);
  };
  check(Numbers(6), [](auto& s) { return std::span(s); });
  check(std::array<double, 6>(), [](auto& s) { return std::span(s); });
  check(Fields{Numbers(6), {{1, 2}, {}, {3}}}, [](Fields& s) { return std::span(s.pressure); });
  check(std::pair<int, Numbers>(1, Numbers(6)), [](auto& s) { return std::span(s.second); });
  Numbers fortran(6);
  check(std::vector<std::span<double>>{std::span(fortran)}, [](auto& s) { return s[0]; });
  struct Opaque {
    std::map<int, Numbers> fields = {{0, Numbers(6)}};
  };
  static_assert(!detail::Storable<Opaque> && !detail::Storable<double*>);
  // What cannot be changed in place: keys, and bits.
  static_assert(!detail::Storable<std::set<double>> && !detail::Storable<std::map<int, double>>);
  static_assert(!detail::Storable<std::vector<bool>>);
  static_assert(detail::Storable<std::list<double>> && detail::Storable<std::pair<int, double>>);
  ReverseFunctions<Opaque, Numbers> functions;
  functions.save = [](const Opaque& s) {
    const auto bytes = std::as_bytes(std::span(s.fields.at(0)));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  functions.load = [](std::span<const std::byte> bytes) {
    Opaque s;
    std::memcpy(s.fields.at(0).data(), bytes.data(), bytes.size());
    return s;
  };
  check(Opaque(), [](Opaque& s) { return std::span(s.fields.at(0)); }, functions);
}

TEST_CASE("reverse: stored objects give back sizes and content") {
  Fields before{{1, 2, 3}, {{4}, {}, {5, 6}}, 7};
  std::vector<std::byte> bytes;
  stored(before)->save([&](std::span<const std::byte> piece) {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  });
  CHECK(std::ssize(bytes) == stored(before)->bytes());
  Fields after;
  const auto load = [&](auto& object, std::size_t size) {
    const std::byte* next = bytes.data();
    stored(object)->load(static_cast<Bytes>(size), [&](std::span<std::byte> piece) {
      std::copy_n(next, piece.size(), piece.begin());
      next += piece.size();
    });
  };
  load(after, bytes.size());
  CHECK(after.parts() == before.parts());
  CHECK_THROWS_AS(load(after, bytes.size() - 1), ArgumentError);
  std::array<double, 2> two{};
  check_error([&] { load(two, 24); }, {"an object of 16 bytes cannot be made from 24 bytes"});
  CHECK(stored(before)->dtype() == DType::boolean);
  CHECK(stored(two)->dtype() == DType::f64);
}

TEST_CASE("reverse: states whose sizes change, within the budget") {
  for (const bool is_known : {true, false}) {
    for (const ReverseCodec codec : {ReverseCodec::none, ReverseCodec::zstd}) {
      Growing chain{.steps = 300};
      const Numbers start{0.3, 0.7, 0.2};
      const Numbers expected = chain.plain(start);
      chain.advanced = 0;
      ReverseFunctions<Numbers> functions = chain.functions();
      ReverseOptions options{.memory_budget = 24_KiB, .sizes_change = true, .codec = codec};
      // Buffers of the codec are made for the largest state.
      if (codec == ReverseCodec::zstd) {
        options.largest_state = 1000;
        options.memory_budget += 2_MiB;
        options.sampled_segments = 0;
      }
      if (is_known) options.steps = chain.steps;
      if (!is_known) functions.done = [](const Numbers&, std::uint64_t n) { return n == 300; };
      ReverseDriver driver(functions, options);
      Numbers u = start;
      CHECK(same_bits(*driver.run(u), expected));
      CHECK(driver.report().peak_bytes <= options.memory_budget);
      CHECK(driver.report().steps_advanced == chain.advanced);
      CHECK(driver.report().states_in_memory > 10);
      if (codec == ReverseCodec::none) CHECK(driver.report().steps_advanced_again < 1200);
    }
  }
}

TEST_CASE("reverse: states whose sizes change, on disk too") {
  const Numbers start{0.3, 0.7, 0.2};
  for (const bool is_known : {true, false}) {
    for (const ReverseCodec codec : {ReverseCodec::none, ReverseCodec::zstd, ReverseCodec::half}) {
      const TemporaryDirectory directory(quick_folder());
      Growing chain{.steps = 300};
      ReverseFunctions<Numbers> functions = chain.functions();
      if (!is_known) functions.done = [](const Numbers&, std::uint64_t n) { return n == 300; };
      ReverseOptions options{.memory_budget = 24_KiB, .sizes_change = true, .codec = codec};
      if (is_known) options.steps = chain.steps;
      if (codec != ReverseCodec::none) {
        options.largest_state = 1000;
        options.memory_budget += 2_MiB;
        options.sampled_segments = 0;
      }
      std::uint64_t before = 0;
      for (const bool is_spilled : {false, true}) {
        if (is_spilled) {
          options.spill = directory.path();
          options.disk_costs = DiskCosts{0.5, 0.5};
          options.memory_budget += 136_KiB;  // for the file and its table
        }
        ReverseDriver driver(functions, options);
        Numbers u = start;
        const std::optional<Numbers> adjoint = driver.run(u);
        REQUIRE(adjoint.has_value());
        if (codec != ReverseCodec::half) CHECK(same_bits(*adjoint, chain.plain(start)));
        CHECK(driver.report().peak_bytes <= options.memory_budget);
        if (codec != ReverseCodec::none) continue;
        CHECK((driver.report().disk_writes > 2) == is_spilled);
        CHECK(driver.report().disk_reads + 1 >= driver.report().disk_writes);
        if (is_spilled) CHECK(driver.report().steps_advanced_again < before);
        before = driver.report().steps_advanced_again;
      }
      CHECK(directory.files().empty());
    }
  }
}

TEST_CASE("reverse: states that begin without numbers, and lose them again") {
  constexpr std::uint64_t steps = 40;
  const auto advance = [](Numbers& u, std::uint64_t n) {
    for (double& x : u) x = std::sin(x);
    if (n % 4 == 1) u.push_back(0.1 * static_cast<double>(n));
    if (n == 25) u.clear();
  };
  double sum = 0;
  const auto reverse = [&](const Numbers& u, Numbers& adjoint, std::uint64_t n) {
    for (const double x : adjoint) sum += x;
    if (n == 25) adjoint.assign(u.size() + 1, 0);
    if (n % 4 == 1) adjoint.pop_back();
    for (std::size_t i = 0; i < u.size(); ++i) adjoint[i] *= std::cos(u[i]);
  };
  std::vector<Numbers> states(1);
  for (std::uint64_t n = 0; n < steps; ++n) {
    states.push_back(states.back());
    advance(states.back(), n);
  }
  Numbers adjoint = states.back();
  for (std::uint64_t n = steps; n > 0; --n) reverse(states[n - 1], adjoint, n - 1);
  const double expected = sum;
  REQUIRE(expected != 0);

  enum class Disk { none, known_costs, measured };
  for (const Disk disk : {Disk::none, Disk::known_costs, Disk::measured}) {
    for (const bool is_known : {true, false}) {
      const TemporaryDirectory directory(quick_folder());
      ReverseFunctions<Numbers> functions{
          .advance = advance, .reverse = reverse, .seed = [](Numbers& u) { return u; }};
      ReverseOptions options{.memory_budget = 9_KiB, .sizes_change = true};
      if (is_known) options.steps = steps;
      if (!is_known) functions.done = [](const Numbers&, std::uint64_t n) { return n == steps; };
      if (disk != Disk::none) {
        options.spill = directory.path();
        if (disk == Disk::known_costs) options.disk_costs = DiskCosts{0.3, 0.3};
        options.memory_budget += 256_KiB;  // for the file and its table
      }
      ReverseDriver driver(functions, options);
      Numbers start;
      sum = 0;
      const std::optional<Numbers> found = driver.run(start);
      REQUIRE(found.has_value());
      CHECK(found->empty());
      CHECK(sum == expected);
      CHECK(driver.report().peak_bytes <= options.memory_budget);
    }
  }
  Numbers start;
  ReverseDriver of_one_size(
      ReverseFunctions<Numbers>{
          .advance = advance, .reverse = reverse, .seed = [](Numbers& u) { return u; }},
      {.steps = steps});
  check_error([&] { of_one_size.run(start); }, {"[reverse]", "no bytes", "sizes_change"});
}

TEST_CASE("reverse: states that outgrow the memory are on disk alone") {
  const TemporaryDirectory directory(quick_folder());
  constexpr std::uint64_t many = 60;
  constexpr std::size_t large = 8000;  // 64 KB
  const auto is_jump = [](std::uint64_t step) { return step == 5; };
  ReverseFunctions<Numbers> functions{
      .advance =
          [&](Numbers& u, std::uint64_t step) {
            if (is_jump(step)) u.resize(large, u[0]);
            for (double& x : u) x = std::sin(x) + 0.1;
          },
      .reverse =
          [&](const Numbers& u, Numbers& adjoint, std::uint64_t step) {
            for (std::size_t i = 0; i < adjoint.size(); ++i) {
              adjoint[i] *= std::cos(i < u.size() ? u[i] : u[0]);
            }
            if (!is_jump(step)) return;
            for (std::size_t i = u.size(); i < adjoint.size(); ++i) adjoint[0] += adjoint[i];
            adjoint.resize(u.size());
          },
      .seed = [](Numbers& u) { return u; }};
  ReverseOptions options{.steps = many, .memory_budget = 2_MiB, .sizes_change = true};
  Numbers u{0.3, 0.7, 0.2};
  const Numbers expected = *ReverseDriver(functions, options).run(u);
  options.spill = directory.path();
  options.disk_costs = DiskCosts{0.5, 0.5};
  options.memory_budget = 24_KiB + 136_KiB;
  ReverseDriver driver(functions, options);
  u = {0.3, 0.7, 0.2};
  CHECK(same_bits(*driver.run(u), expected));
  CHECK(driver.report().peak_bytes <= options.memory_budget);
  CHECK(driver.report().disk_reads > many / 3);
}

TEST_CASE("reverse: by bytes, about as few steps as with states of one size") {
  for (const std::uint64_t states : {5, 20}) {
    const Bytes budget = budget_for(states, 8, {});
    for (const std::uint64_t n : {30, 200, 1000}) {
      const Found fixed = found_by_driver(n, 8, {.memory_budget = budget});
      const Found by_bytes = found_by_driver(n, 8, {.memory_budget = budget, .sizes_change = true});
      CHECK(by_bytes == fixed);
      CAPTURE(states, n, fixed.report.steps_advanced_again);
      CHECK(static_cast<double>(by_bytes.report.steps_advanced_again) <=
            1.15 * static_cast<double>(fixed.report.steps_advanced_again));
    }
  }
}

TEST_CASE("reverse: segments, as many steps as the tape has room for") {
  constexpr Bytes tape = 500;
  for (const bool is_known : {true, false}) {
    Row row{.steps = 200};
    Bytes most = 0;
    ReverseFunctions<Numbers> functions = row.functions(is_known);
    functions.reverse = nullptr;
    functions.reverse_segment = [&](Numbers& u, Numbers& adjoint, std::uint64_t first,
                                    std::uint64_t last) {
      most = std::max(most, static_cast<Bytes>(last - first) * tape);
      std::vector<Numbers> taped{u};
      for (std::uint64_t n = first; n + 1 < last; ++n) {
        taped.push_back(taped.back());
        row.advance(taped.back(), n);
      }
      for (std::uint64_t n = last; n > first; --n)
        row.reverse(taped[n - 1 - first], adjoint, n - 1);
    };
    ReverseOptions options{.memory_budget = 24_KiB, .tape_bytes_per_step = tape};
    if (is_known) options.steps = row.steps;
    ReverseDriver driver(functions, options);
    Numbers u = row.start(30);
    const ReverseForecast forecast = driver.forecast(u);
    CHECK(forecast.segment_steps > 3);
    const auto adjoint = driver.run(u);
    CHECK(Found{adjoint, row.loss, row.gradient, {}} == plainly(row.steps, 30));
    CHECK(most == static_cast<Bytes>(forecast.segment_steps) * tape);
    CHECK(driver.report().peak_bytes <= options.memory_budget);
    CHECK(driver.report().peak_bytes >= most);
    if (is_known) {
      CHECK(driver.report().steps_advanced_again == forecast.steps_advanced_again);
    }
    options.tape_bytes_per_step = 0;
    check_error([&] { ReverseDriver(functions, options).run(u); }, {"tape_bytes_per_step"});
  }
}

TEST_CASE("reverse: the smallest feasible budget") {
  const TemporaryDirectory directory;
  for (const bool on_disk : {false, true}) {
    ReverseOptions options{.steps = 200};
    if (on_disk) {
      options.spill = directory.path();
      options.disk_costs = DiskCosts{3, 3};
    }
    Row row{.steps = 200};
    Numbers u = row.start(20);
    options.memory_budget = 100;
    try {
      ReverseDriver(row.functions(), options).run(u);
      FAIL("no error");
    } catch (const BudgetError& error) {
      CHECK(error.budget() == 100);
      CHECK_THAT(error.what(), Catch::Matchers::Contains("[reverse] the budget of 100 B is too "
                                                         "small; the smallest feasible budget"));
      CHECK(row.advanced == 0);
      options.memory_budget = error.smallest_feasible() - 1;
      CHECK_THROWS_AS(ReverseDriver(row.functions(), options).run(u), BudgetError);
      options.memory_budget = error.smallest_feasible();
      CHECK(found_by_driver(200, 20, options) == plainly(200, 20));
    }
  }
}

TEST_CASE("reverse: check names a step that is not reproducible") {
  Row row{.steps = steps};
  ReverseFunctions<Numbers> functions = row.functions();
  int runs = 0;
  functions.advance = [&](Numbers& u, std::uint64_t n) {
    row.advance(u, n);
    if (n == 17 && ++runs == 2) u[1] += 1e-9;
  };
  const ReverseOptions options{.steps = steps,
                               .memory_budget = budget_for(5, 3, {.steps = steps, .check = true}),
                               .check = true};
  Numbers u = row.start(3);
  check_error([&] { ReverseDriver(functions, options).run(u); },
              {"step 17 made another state than when it ran first", "interface_test.cpp"});
}

TEST_CASE("reverse: a state that is larger than planned") {
  Growing chain{.steps = 40};
  Numbers u{0.3, 0.7};
  check_error([&] { ReverseDriver(chain.functions(), {.steps = 40}).run(u); },
              {"the state before step 1 has 24 bytes, more than the 16",
               "set ReverseOptions::largest_state, or sizes_change"});
  u = {0.3, 0.7};
  const Numbers expected = chain.plain(u);
  CHECK(same_bits(*ReverseDriver(chain.functions(), {.steps = 40, .largest_state = 200}).run(u),
                  expected));
}

TEST_CASE("reverse: options that contradict each other") {
  check_options_error({.steps = steps, .resume = "/tmp"}, "resume and tag belong together");
  check_options_error({.steps = steps, .stop_after = std::chrono::hours(1)}, "set resume");
  check_options_error({.steps = steps, .memory_budget = 0}, "memory budget is not positive");
  check_options_error({.steps = steps, .tolerance = 1}, "belong to ReverseCodec::zfp");
  check_options_error({.steps = steps, .spill = "/tmp", .resume = "/", .tag = "x"},
                      "name different directories");
  check_options_error({.steps = steps, .disk_costs = DiskCosts{1, 1}}, "set spill");
  check_options_error({.steps = steps, .codec = ReverseCodec::half, .check = true}, "lossy codec");
  Row row;
  Numbers u = row.start(2);
  check_error([&] { ReverseDriver(row.functions(), {}).run(u); }, {"the end of the chain"});
  check_error([&] { ReverseDriver(row.functions(false), {.steps = 3}).run(u); },
              {"the end of the chain"});
  check_error([&] { ReverseDriver(ReverseFunctions<Numbers>(), {.steps = 3}).run(u); },
              {"give advance, seed, and one of reverse and reverse_segment"});
  const DiskCosts negative{-1, 1};
  check_error(
      [&] { found_by_driver(steps, 3, {.steps = steps, .spill = "/tmp", .disk_costs = negative}); },
      {"[disk] writing takes -1.0"});
  CHECK_THROWS_AS(found_by_driver(steps, 3, {.steps = steps, .spill = "/nowhere"}), FileError);
}

}  // namespace reverse_interface_test
