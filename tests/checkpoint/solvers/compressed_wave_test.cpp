#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "autodiff/bytes.h"
#include "autodiff/dtype.h"
#include "autodiff/error.h"
#include "checkpoint/reverse/reverse.h"
#include "checkpoint/reverse/snapshot_codec.h"
#include "tests/catch.h"
#include "tests/checkpoint/reverse/wave.h"

namespace reverse_compressed_wave_test {

using namespace palimpsest;
using namespace palimpsest::tests;

namespace {

constexpr std::uint64_t wave_steps = 400;

/// Bytes of a state for each byte that it takes when encoded, on average over the run.
double shrinkage(const Wave& wave, SnapshotCodec& codec) {
  Wave::State u = wave.start();
  const auto plain = std::as_bytes(std::span(u));
  std::vector<std::byte> encoded(static_cast<std::size_t>(codec.most(std::ssize(plain))));
  double bytes = 0;
  double encoded_bytes = 0;
  for (std::uint64_t n = 0; n < wave_steps; ++n) {
    wave.advance(u);
    if (n % 16 != 0) continue;
    bytes += static_cast<double>(plain.size());
    encoded_bytes += static_cast<double>(codec.encode(plain, encoded));
  }
  return bytes / encoded_bytes;
}

}  // namespace

TEST_CASE("reverse, zfp: states of waves shrink 10 times, and the gradient's error is known") {
  Wave wave{.n = 64, .steps = wave_steps};
  const ReverseOptions options{.steps = wave_steps,
                               .memory_budget = 2_MiB,
                               .codec = ReverseCodec::zfp,
                               .tolerance = 1e-3,
                               .codec_shape = {wave.n, wave.n}};
  std::unique_ptr<SnapshotCodec> codec;
  try {
    codec = make_snapshot_codec(options, DType::f64, 0, Where::current());
  } catch (const ArgumentError& error) {
    REQUIRE_THAT(error.what(), Catch::Matchers::Contains("install libzfp-dev"));
    WARN("this library was built without zfp");
    return;
  }
  const double factor = shrinkage(wave, *codec);
  CAPTURE(factor);
  CHECK(factor > 10);
  CHECK(factor < 15);

  Wave exact{.n = 64, .steps = wave_steps};
  Wave::State u = exact.start();
  ReverseDriver(exact.functions(), {.steps = wave_steps, .memory_budget = 64_MiB}).run(u);
  ReverseDriver driver(wave.functions(), options);
  u = wave.start();
  driver.run(u);
  const ReverseReport& report = driver.report();
  CHECK(report.peak_bytes <= options.memory_budget);
  CHECK(report.steps_advanced_again > 0);
  double squares = 0;
  for (std::size_t i = 0; i < wave.gradient.size(); ++i) {
    squares += std::pow(wave.gradient[i] - exact.gradient[i], 2);
  }
  const double truth = std::sqrt(squares);
  const double estimate = std::ranges::find(report.errors, "gradient", &ObjectError::name)->error;
  CAPTURE(truth, estimate);
  CHECK(truth > 0);
  CHECK(estimate < 3 * truth);
  CHECK(estimate > truth / 3);
}

}  // namespace reverse_compressed_wave_test
