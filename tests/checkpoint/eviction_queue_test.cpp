#include "checkpoint/eviction_queue.h"

#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "tests/catch.h"

#include <rapidcheck/catch.h>

namespace eviction_queue_test {

using namespace palimpsest;

TEST_CASE("eviction queue: the least is found to within a quarter of a doubling") {
  rc::prop("against looking at all", [](std::uint32_t seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t limit) {
      return static_cast<std::uint32_t>(random() % limit);
    };
    EvictionQueue queue;
    struct Entry {
      double price;
      double last_use;
    };
    std::map<ValueId, Entry> entries;
    double now = 0;
    for (int k = 0; k < 300; ++k) {
      now += 0.01 * below(100);
      const ValueId root = below(40);
      if (below(4) == 0) {
        queue.erase(root);
        entries.erase(root);
      } else {
        const double price = below(8) == 0 ? 0 : std::exp2(below(60)) * (1 + below(100));
        const Entry entry{price, now - 0.01 * below(50)};
        queue.put(root, entry.price, entry.last_use);
        entries[root] = entry;
      }
      RC_ASSERT(queue.contains(root) == entries.contains(root));
      RC_ASSERT(queue.empty() == entries.empty());
      now += 0.001;
      const auto score = [&](ValueId id) {
        const Entry& entry = entries.at(id);
        return entry.price / (now - entry.last_use);
      };
      const ValueId found = queue.least(now);
      if (entries.empty()) {
        RC_ASSERT(found == none);
        continue;
      }
      RC_ASSERT(queue.price(found) == entries.at(found).price);
      for (const auto& [id, entry] : entries) {
        RC_ASSERT(score(found) <= score(id) * std::exp2(0.25) * (1 + 1e-12));
      }
    }
  });
}

TEST_CASE("eviction queue: time turns the order round") {
  EvictionQueue queue;
  queue.put(1, 1, 0);     // cheap and not used for a long time
  queue.put(2, 100, 10);  // expensive
  CHECK(queue.least(10.5) == 1);
  queue.put(1, 1, 10.95);
  CHECK(queue.least(11) == 1);
  queue.put(1, 1, 10.999);
  CHECK(queue.least(11) == 2);
  queue.put(3, 0, 11);  // a free value is evicted first, however recent
  CHECK(queue.least(11.5) == 3);
}

TEST_CASE("eviction queue: prices beyond all numbers keep their order") {
  EvictionQueue queue;
  queue.put(1, std::numeric_limits<double>::infinity(), 0);
  CHECK(queue.least(1) == 1);
  queue.put(2, 1e300, 0);
  CHECK(queue.least(1) == 2);
}

}  // namespace eviction_queue_test
