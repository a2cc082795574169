#include <malloc.h>

#include <algorithm>

#include "tests/catch.h"
#include "tests/checkpoint/reverse/chains.h"
#include "tests/checkpoint/reverse/resumed.h"
#include "tests/temporary_directory.h"

namespace reverse_memory_test {

using namespace palimpsest;
using namespace palimpsest::tests;

namespace {

/// Bytes that the C library has given out.
Bytes given_out() {
  const auto info = mallinfo2();
  return static_cast<Bytes>(info.uordblks) + static_cast<Bytes>(info.hblkhd);
}

/// The most bytes that a run takes in addition to the caller's objects, as the allocator sees it
/// when a function of the caller begins.
struct Watched {
  Bytes most = 0;
  Bytes own = 0;  // of the caller's adjoint

  void note(Bytes before) { most = std::max(most, given_out() - before - own); }
};

}  // namespace

TEST_CASE("reverse: the allocator gives out no more than the budget") {
  constexpr std::size_t size = 1000;
  constexpr auto bytes = static_cast<Bytes>(size * sizeof(double));
  if (given_out() == 0) return;  // another allocator, as sanitizers have
  for (int way = 0; way < resumed_ways; ++way) {
    for (const Bytes more : {Bytes{0}, 20 * bytes, 300 * bytes}) {
      const TemporaryDirectory directory(quick_folder());
      ReverseOptions options = resumed_options(way, 50, size, directory.path());
      options.record_every = std::chrono::hours(1);
      options.memory_budget = smallest_budget(size, options) + more;
      Row row{.steps = 50};
      Watched watched;
      Numbers u = row.start(size);
      ReverseFunctions<Numbers> functions = row.functions(options.steps.has_value());
      const Bytes before = given_out();
      functions.advance = [&](Numbers& s, std::uint64_t n) {
        watched.note(before);
        row.advance(s, n);
      };
      functions.reverse = [&](Numbers& s, Numbers& a, std::uint64_t n) {
        watched.note(before);
        row.reverse(s, a, n);
      };
      functions.seed = [&](Numbers& s) {
        watched.own = bytes;
        return row.seed(s);
      };
      {
        ReverseDriver driver(functions, options);
        driver.run(u);
        CAPTURE(way, more, watched.most, options.memory_budget);
        CHECK(watched.most <= options.memory_budget);
        CHECK(driver.report().peak_bytes <= options.memory_budget);
        // Not far below, so that the budget is used.
        if (more == 20 * bytes && way < 2) CHECK(watched.most > more);
      }
    }
  }
}

}  // namespace reverse_memory_test
