#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "checkpoint/block.h"
#include "tests/catch.h"
#include "tests/memory/chain.h"
#include "tests/memory/ways.h"

namespace palimpsest::resident_test {
namespace {

constexpr int values = 40;

/// The resident bytes of this process, counted page by page. /proc/self/statm is inexact: it adds
/// up the counts of the processors only now and then.
Bytes exact_resident_size() {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string word; file >> word;) {
    Bytes kilobytes = 0;
    if (word == "Rss:" && file >> kilobytes) return kilobytes * 1024;
  }
  return resident_size();
}

/// The budget for chains of values of `bytes` bytes.
Bytes budget_for(Bytes bytes) { return 16 * bytes + 1024; }

/// The largest resident size while a chain is recorded and differentiated twice.
Bytes peak_of(const Way& way, Bytes bytes) {
  Bytes most = 0;
  const Chain chain(bytes / 4, true, [&] { most = std::max(most, exact_resident_size()); });
  const Bytes budget = budget_for(bytes);
  Tape tape(way.evaluator(budget));
  for (int k = 0; k < 2; ++k) {
    tape.clear();
    backward(chain.record(tape, values), way.options(budget));
  }
  return most;
}

TEST_CASE("a process grows by the budget and hardly more, in any mode and memory handling") {
  for (const Way& way : ways()) {
    for (const Bytes bytes : {64_KiB, 132_KiB + 4, 256_KiB, 1_MiB + 4}) {
      CAPTURE(way.name, bytes);
      const auto growth = [&] {
        // Memory that is freed but still in the heap would hide growth.
        malloc_trim(0);
        peak_of(way, 256);
        release_spare(spare_bytes());
        const Bytes before = exact_resident_size();
        return peak_of(way, bytes) - before;
      };
      const Bytes most = budget_for(bytes) + 256_KiB + budget_for(bytes) / 50;
      // The C library gives a thread a heap of its own when it first allocates, which for workers
      // may be only now.
      const Bytes first = growth();
      CHECK((first <= most ? first : growth()) <= most);
    }
  }
}

TEST_CASE("an eager tape in a budget holds no more however much passes through it") {
  const Way eager_way = ways()[2];
  for (const Bytes bytes : {16_KiB, 1_MiB}) {
    malloc_trim(0);
    release_spare(spare_bytes());
    const Bytes before = exact_resident_size();
    Bytes most = 0;
    const Chain chain(bytes / 4, true, [&] { most = std::max(most, exact_resident_size()); });
    const Bytes budget = budget_for(bytes);
    Tape tape(eager_way.evaluator(budget));
    CHECK(chain.record(tape, 400).item() == 0);
    // The budget does not cover the nodes of the tape.
    CHECK(most - before <= budget + 1_MiB);
  }
}

}  // namespace
}  // namespace palimpsest::resident_test
