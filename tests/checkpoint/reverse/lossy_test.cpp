#include <algorithm>
#include <cmath>

#include "autodiff/error.h"
#include "checkpoint/plan.h"
#include "checkpoint/reverse/snapshot_codec.h"
#include "tests/catch.h"
#include "tests/checkpoint/reverse/chains.h"
#include "tests/checkpoint/reverse/wave.h"
#include "tests/error_of.h"
#include "tests/temporary_directory.h"

namespace reverse_lossy_test {

using namespace palimpsest;
using namespace palimpsest::tests;

namespace {

double norm(const Numbers& x) {
  double squares = 0;
  for (const double number : x) squares += number * number;
  return std::sqrt(squares);
}

double distance(const Numbers& a, const Numbers& b) {
  Numbers difference = a;
  for (std::size_t i = 0; i < b.size(); ++i) difference[i] -= b[i];
  return norm(difference);
}

bool has_zfp() {
  Row row;
  Numbers u = row.start(4);
  try {
    ReverseDriver(row.functions(), {.steps = 3, .codec = ReverseCodec::zfp, .tolerance = 1e-6})
        .run(u);
    return true;
  } catch (const ArgumentError& error) {
    CHECK_THAT(error.what(), Catch::Matchers::Contains("install libzfp-dev"));
    return false;
  }
}

const ObjectError& error_of_gradient(const ReverseReport& report) {
  return *std::ranges::find(report.errors, "gradient", &ObjectError::name);
}

}  // namespace

TEST_CASE("reverse, lossy: the estimated error of the gradient is within a factor of 3") {
  const bool zfp = has_zfp();
  if (!zfp) WARN("this library was built without zfp");
  const TemporaryDirectory directory;
  for (const std::uint64_t steps : {200, 400}) {
    Wave exact{.steps = steps};
    Wave::State u = exact.start();
    ReverseDriver(exact.functions(), {.steps = steps}).run(u);
    struct Case {
      ReverseCodec codec;
      double tolerance;
      bool on_disk;
    };
    for (const auto& [codec, tolerance, on_disk] : {Case{ReverseCodec::half, 0, false},
                                                    {ReverseCodec::zfp, 1e-3, false},
                                                    {ReverseCodec::zfp, 1e-5, false},
                                                    {ReverseCodec::zfp, 1e-4, true}}) {
      if (codec == ReverseCodec::zfp && !zfp) continue;
      Wave wave{.steps = steps};
      u = wave.start();
      ReverseOptions options{
          .steps = steps, .memory_budget = 768_KiB, .codec = codec, .tolerance = tolerance};
      if (codec == ReverseCodec::zfp) options.codec_shape = {wave.n, wave.n};
      if (on_disk) {
        options.spill = directory.path();
        options.disk_costs = DiskCosts{1, 1};
        options.memory_budget = 512_KiB;
      }
      ReverseDriver driver(wave.functions(), options);
      driver.run(u);
      const ReverseReport& report = driver.report();
      CHECK(report.peak_bytes <= options.memory_budget);
      REQUIRE(report.errors.size() == 3);
      const ObjectError& error = error_of_gradient(report);
      const double truth = distance(wave.gradient, exact.gradient);
      CAPTURE(steps, static_cast<int>(codec), tolerance, on_disk, truth, error.error,
              report.states_in_memory);
      CHECK(truth > 0);
      CHECK(error.error < 3 * truth);
      CHECK(error.error > truth / 3);
      CHECK(std::abs(error.norm / norm(exact.gradient) - 1) < 0.2);
    }
  }
}

TEST_CASE("reverse, lossy: compressed states take a tenth, so that more are kept") {
  if (!has_zfp()) return;
  Wave wave{.n = 64, .steps = 300};
  Wave::State u = wave.start();
  ReverseOptions options{.steps = 300, .memory_budget = 2_MiB};
  ReverseDriver plain(wave.functions(), options);
  plain.run(u);
  options.codec = ReverseCodec::zfp;
  options.tolerance = 1e-3;
  options.codec_shape = {wave.n, wave.n};
  options.sampled_segments = 3;
  ReverseDriver compressed(wave.functions(), options);
  u = wave.start();
  compressed.run(u);
  CHECK(compressed.report().peak_bytes <= options.memory_budget);
  CHECK(compressed.report().states_in_memory > 2 * plain.report().states_in_memory);
  CHECK(compressed.report().steps_advanced_again < plain.report().steps_advanced_again);
  CHECK(error_of_gradient(compressed.report()).relative() < 0.2);
}

TEST_CASE("reverse, lossy: states that a codec cannot keep") {
  Row row;
  Numbers u = row.start(4);
  ReverseFunctions<std::vector<int>, double> functions{
      .advance = [](std::vector<int>&, std::uint64_t) {},
      .reverse = [](std::vector<int>&, double&, std::uint64_t) {},
      .seed = [](std::vector<int>&) { return 1.0; }};
  std::vector<int> integers(5);
  check_error(
      [&] { ReverseDriver(functions, {.steps = 3, .codec = ReverseCodec::half}).run(integers); },
      {"ReverseCodec::half needs states that consist of double or of float only"});
  if (!has_zfp()) return;
  const auto reject = [&](ReverseOptions options, const char* words) {
    options.steps = 3;
    options.codec = ReverseCodec::zfp;
    check_error([&] { ReverseDriver(row.functions(), options).run(u); }, {words});
  };
  reject({}, "needs a positive tolerance");
  reject({.tolerance = 1, .codec_shape = {3}}, "a state of 4 numbers does not consist of arrays");
  u[0] = std::nan("");
  reject({.tolerance = 1}, "contains NaN or infinity");
}

template <class T>
void check_tolerances(DType dtype) {
  for (const double largest : {1.0, 1e4, 1e8, 1e12}) {
    std::vector<T> numbers(100);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const double size = i % 7 == 0 ? largest : 1;
      numbers[i] = static_cast<T>(size * std::sin(0.7 * static_cast<double>(i)));
    }
    const auto state = std::as_bytes(std::span(numbers));
    for (const double tolerance : {1e-3, 1e-6, 1e-9, 1e-12, 1e-15}) {
      CAPTURE(largest, tolerance);
      const auto codec = make_snapshot_codec({.codec = ReverseCodec::zfp, .tolerance = tolerance},
                                             dtype, 0, Where::current());
      std::vector<std::byte> encoded(static_cast<std::size_t>(codec->most(std::ssize(state))));
      encoded.resize(static_cast<std::size_t>(codec->encode(state, encoded)));
      CHECK(codec->decoded_bytes(encoded) == std::ssize(state));
      std::vector<T> decoded(numbers.size());
      CHECK(codec->decode(encoded, std::as_writable_bytes(std::span(decoded))));
      double worst = 0;
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        worst = std::max(worst, std::abs(static_cast<double>(decoded[i]) - numbers[i]));
      }
      CHECK(worst <= tolerance);
      encoded.pop_back();
      CHECK(!codec->decode(encoded, std::as_writable_bytes(std::span(decoded))));
    }
  }
}

TEST_CASE("reverse: zfp keeps to a tolerance, also beyond the digits that it works with") {
  if (!has_zfp()) return;
  check_tolerances<double>(DType::f64);
  check_tolerances<float>(DType::f32);
}

}  // namespace reverse_lossy_test
