#include <algorithm>

#include "checkpoint/block.h"
#include "tests/catch.h"
#include "tests/memory/chain.h"
#include "tests/memory/outside.h"
#include "tests/memory/ways.h"

namespace palimpsest::accounting_test {
namespace {

constexpr int values = 12;

/// The bytes of values of one size, as the allocator sees them.
class Outside {
 public:
  explicit Outside(Bytes bytes) : bytes_(bytes) {
    release_spare(spare_bytes());
    mapped_ = mapped_bytes();
    const auto size = static_cast<std::size_t>(bytes);
    watch_size(0);
    if (is_mapped(bytes)) return;
    bound_requests(size, size + buffer_alignment);
    allocate_buffer(bytes);
    bound_requests(1, 0);
    watch_size(last_request());
  }

  Bytes now() const { return (watched_blocks() - blocks_) * bytes_ + mapped_bytes() - mapped_; }

 private:
  Bytes bytes_;
  std::int64_t blocks_ = watched_blocks();
  std::int64_t mapped_ = 0;
};

/// Measurements taken while a program ran.
struct Seen {
  Bytes most = 0;      // outside the meter, as the allocator sees it
  Bytes too_much = 0;  // largest excess over the meter and the spare memory
  Bytes too_few = 0;

  void note(Bytes outside, Bytes inside) {
    most = std::max(most, outside);
    too_much = std::max(too_much, outside - inside);
    too_few = std::max(too_few, inside - outside);
  }
};

// Values of one element are counted by the meter only, and each mapping ends at a page boundary.
constexpr Bytes scalars = 512;
constexpr Bytes page = 4096;

/// Makes oneTBB map the memory that it maps when first used.
void start_threads() {
  Tape tape;
  backward(Chain(64, false, [] {}).record(tape, values));
}

void check(const Way& way, Bytes bytes, Bytes budget) {
  CAPTURE(way.name, bytes, budget);
  const bool is_pooled = way.is(AllocationPolicy::pooled);
  const bool is_hybrid = way.name.starts_with("hybrid");
  const Outside outside(bytes);
  {
    const auto evaluator = way.evaluator(budget);
    const Meter& meter = meter_of(evaluator);
    Seen seen;
    const Chain chain(bytes / 4, false,
                      [&] { seen.note(outside.now(), meter.reserved() + spare_bytes()); });
    Tape tape(evaluator);
    for (int k = 0; k < 2; ++k) {
      tape.clear();
      seen = {};
      const Report report = backward(chain.record(tape, values), way.options(budget)).report();
      CHECK(seen.most >= 3 * bytes);
      // An arena of at most a page is one block of the heap, of another size.
      CHECK(seen.too_few <= (is_hybrid && 3 * bytes <= page ? page : scalars));
      // The meter does not know what a pool keeps, but the pool's report does. Arenas of hybrid
      // stages keep only their occupied pages, in a mapping of unchanged size.
      if (way.name == "lazy, pooled") {
        CHECK(std::abs(seen.most - report.measured_peak) <= scalars);
      } else if (!is_pooled && !is_hybrid) {
        CHECK(seen.too_much <= page);
      }
      if (budget != unlimited && !is_hybrid) CHECK(seen.most <= budget + page);
    }
  }
  CHECK(spare_bytes() <= most_spare);
  release_spare(spare_bytes());
  CHECK(outside.now() == 0);
}

TEST_CASE("the allocator has given out what the meter counts, at any size, mode and handling") {
  start_threads();
  // A unique size tells the heap blocks of these values from other blocks. Pools hand out multiples
  // of 64 bytes.
  for (const Bytes bytes :
       {Bytes{19 * 64}, Bytes{257 * 64}, Bytes{2049 * 64}, 256_KiB, 1_MiB, 16_MiB}) {
    for (const Way& way : ways()) {
      check(way, bytes, unlimited);
      check(way, bytes, 8 * bytes + 1024);
    }
  }
}

TEST_CASE("the allocator has given out what the meter counts, of values of a gibibyte") {
  start_threads();
  for (const Way& way : ways()) {
    // The other ways copy present values or the results that they keep.
    if (way.name.starts_with("lazy") && !way.is(AllocationPolicy::cached)) {
      check(way, 1_GiB, unlimited);
    }
  }
}

}  // namespace
}  // namespace palimpsest::accounting_test
