#include "autodiff/kernels/pool.h"

#include "tests/catch.h"
//
#include <rapidcheck.h>
#include <rapidcheck/catch.h>

#include <cstring>
#include <limits>
#include <vector>

#include "autodiff/kernels/kernels.h"

namespace palimpsest::pool_test {
namespace {

/// The position of the first largest element in window k.
template <class T>
std::int64_t place_of_maximum(const WindowRun<T>& run, std::int64_t k) {
  const std::int64_t start = run.first + k * run.stride;
  std::int64_t best = start;
  for (std::int64_t a = 0; a < run.taps[0]; ++a) {
    for (std::int64_t b = 0; b < run.taps[1]; ++b) {
      for (std::int64_t c = 0; c < run.taps[2]; ++c) {
        const std::int64_t at = start + a * run.step[0] + b * run.step[1] + c * run.step[2];
        const bool found_nan = run.x[best] != run.x[best];
        if (!found_nan && !(run.x[at] <= run.x[best])) best = at;
      }
    }
  }
  return best;
}

TEMPLATE_TEST_CASE("maxima of a run of windows are those of a loop over each", "", float, double) {
  using T = TestType;
  using Limits = std::numeric_limits<T>;
  rc::prop("values and places, bit for bit", [] {
    WindowRun<T> run{};
    run.windows = *rc::gen::inRange<std::int64_t>(1, 40);
    run.stride = *rc::gen::inRange<std::int64_t>(0, 5);
    run.first = *rc::gen::inRange<std::int64_t>(0, 3);
    std::int64_t last = run.first + (run.windows - 1) * run.stride;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      run.taps[axis] = *rc::gen::inRange<std::int64_t>(1, 4);
      run.step[axis] = *rc::gen::inRange<std::int64_t>(1, 9);
      last += (run.taps[axis] - 1) * run.step[axis];
    }
    // The vector ends at the last element, so that a sanitizer finds reads past it.
    const T odd[] = {
        Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity(), T(0), -T(0), T(1), T(-1)};
    const int kinds = *rc::gen::inRange(1, 8);
    std::vector<T> x(static_cast<std::size_t>(last + 1));
    for (T& element : x) {
      const int kind = *rc::gen::inRange(0, 12);
      element = kind < kinds ? odd[kind] : static_cast<T>(*rc::gen::inRange(-9, 9));
    }
    run.x = x.data();
    // Also a size that does not fit in 32 bits.
    run.size = *rc::gen::element<std::int64_t>(std::ssize(x), std::int64_t{1} << 32);

    const auto count = static_cast<std::size_t>(run.windows);
    std::vector<T> largest(count), alone(count);
    std::vector<std::int64_t> places(count);
    kernels().pool<T>().maxima(run, largest.data(), places.data());
    kernels().pool<T>().maxima(run, alone.data(), nullptr);
    for (std::size_t k = 0; k < count; ++k) {
      const std::int64_t expected = place_of_maximum(run, static_cast<std::int64_t>(k));
      RC_ASSERT(places[k] == expected);
      RC_ASSERT(std::memcmp(&largest[k], run.x + expected, sizeof(T)) == 0);
    }
    RC_ASSERT(std::memcmp(alone.data(), largest.data(), count * sizeof(T)) == 0);
  });
}

}  // namespace
}  // namespace palimpsest::pool_test
