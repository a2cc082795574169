#include "checkpoint/layout.h"

#include <algorithm>

#include "checkpoint/liveness.h"
#include "tests/catch.h"
#include "tests/checkpoint/graphs.h"

#include <rapidcheck/catch.h>

using namespace palimpsest;
using palimpsest::tests::GraphBuilder;

TEST_CASE("layout: intervals of a schedule computed by hand") {
  GraphBuilder b;
  const ValueId x = b.source(1000);
  const ValueId a = b.node({x}, 100, 1, 30);
  const ValueId v = b.view(a);
  const ValueId c = b.node({v}, 65);
  b.graph.add_target(c);
  const Layout layout = lay_out(b.graph, drop_after_last_use(b.graph, b.graph.needed_nodes()));
  // compute 1, compute 2, drop a, compute 3, drop v
  REQUIRE(layout.intervals.size() == 3);
  const auto is = [&](std::size_t i, ValueId storage, std::uint32_t first, std::uint32_t last) {
    const Interval& interval = layout.intervals[i];
    return interval.storage == storage && interval.first == first && interval.last == last;
  };
  CHECK(is(0, a, 0, 4));
  CHECK(is(1, Interval::workspace, 0, 0));
  CHECK(is(2, c, 3, 4));
  CHECK(layout.intervals[1].bytes == 30);
  CHECK(layout.size == 256);
}

TEST_CASE("layout: nothing to place takes nothing") {
  GraphBuilder b;
  b.graph.add_target(b.source(8));
  CHECK(lay_out(b.graph, {}).size == 0);
  CHECK(lay_out(b.graph, {}).intervals.empty());
}

TEST_CASE("layout: a keep-all chain is packed without a gap") {
  const Graph graph = tests::chain(1000, 100);
  const Schedule schedule = drop_after_last_use(graph, graph.needed_nodes());
  CHECK(lay_out(graph, schedule).size == 128 * (1000 + 1));
}

TEST_CASE("layout: intervals agree with the simulation and never overlap") {
  rc::prop("in space and time at once", [](std::uint32_t seed) {
    const Graph graph = tests::random_graph(seed, 5 + seed % 60);
    const Schedule schedule = drop_after_last_use(graph, graph.needed_nodes());
    const Simulation simulation = simulate(graph, schedule);
    const Layout layout = lay_out(graph, schedule);
    std::vector<Bytes> timeline(schedule.steps.size());
    for (const Interval& a : layout.intervals) {
      for (std::uint32_t k = a.first; k <= a.last; ++k) timeline[k] += a.bytes;
      RC_ASSERT(a.offset % 64 == 0);
      RC_ASSERT(a.offset + a.bytes <= layout.size);
      for (const Interval& b : layout.intervals) {
        if (&a == &b || a.last < b.first || b.last < a.first) continue;
        RC_ASSERT(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset);
      }
    }
    RC_ASSERT(timeline == simulation.timeline);
    RC_ASSERT(layout.size >= simulation.peak);
  });
}

TEST_CASE("layout: what is small fits in between what is large") {
  GraphBuilder b;
  ValueId last = b.source(8);
  for (int i = 0; i < 50; ++i) {
    const ValueId small = b.node({last}, 64);
    last = b.node({last, small}, 1 << 20);
  }
  b.graph.add_target(last);
  const Schedule schedule = drop_after_last_use(b.graph, b.graph.needed_nodes());
  CHECK(lay_out(b.graph, schedule).size == simulate(b.graph, schedule).peak);
}

TEST_CASE("layout: the quick one is sound, and the one that takes its time fits where it does") {
  rc::prop("in its bytes", [](std::uint32_t seed) {
    const Graph graph = tests::random_graph(seed, 5 + seed % 60);
    const Schedule schedule = drop_after_last_use(graph, graph.needed_nodes());
    const Bytes peak = simulate(graph, schedule).peak;
    const Bytes size = lay_out(graph, schedule, peak).size;
    RC_ASSERT(lay_out(graph, schedule, size).size <= size);
    for (const Bytes enough : {peak, peak + peak / 20}) {
      const Bytes quick = lay_out_quickly(graph, schedule, enough).size;
      RC_ASSERT(quick >= peak);
      if (quick <= enough) RC_ASSERT(lay_out(graph, schedule, enough).size <= enough);
    }
  });
}
