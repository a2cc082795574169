#include "checkpoint/layout.h"

#include <algorithm>

#include "checkpoint/schedule.h"
#include "tests/catch.h"
#include "tests/checkpoint/graphs.h"

#include <rapidcheck/catch.h>

namespace layout_test {

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

namespace {

/// Bytes occupied at each step. An output and the storage it takes over count once.
std::vector<Bytes> timeline_of(const Layout& layout, const Schedule& schedule) {
  std::vector<Bytes> timeline(schedule.steps.size());
  for (const Interval& interval : layout.intervals) {
    for (std::uint32_t k = interval.first; k <= interval.last; ++k) timeline[k] += interval.bytes;
    if (interval.takes_over == none) continue;
    const Interval& before = layout.intervals[interval.takes_over];
    for (std::uint32_t k = interval.first; k <= before.last; ++k) timeline[k] -= before.bytes;
  }
  return timeline;
}

}  // namespace

TEST_CASE("layout: intervals agree with the simulation and never overlap") {
  rc::prop("in space and time at once", [](std::uint32_t seed) {
    const Graph graph = tests::random_graph(seed, 5 + seed % 60);
    const Schedule schedule = drop_after_last_use(graph, graph.needed_nodes());
    const Simulation simulation = simulate(graph, schedule);
    const Layout layout = lay_out(graph, schedule);
    for (const Interval& a : layout.intervals) {
      RC_ASSERT(a.offset % 64 == 0);
      RC_ASSERT(a.offset + a.bytes <= layout.size);
      for (const Interval& b : layout.intervals) {
        if (&a == &b || a.last < b.first || b.last < a.first) continue;
        RC_ASSERT(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset);
      }
    }
    RC_ASSERT(timeline_of(layout, schedule) == simulation.timeline);
    RC_ASSERT(layout.size >= simulation.peak);
  });
}

/// Three nodes, each of which may be computed in place of the previous one.
Graph takers(bool read_again, bool first_present) {
  GraphBuilder b;
  const ValueId x = b.source(1000);
  const ValueId a = b.node({x}, 100);
  std::vector<ValueId> made{a};
  for (int i = 0; i < 2; ++i) {
    const ValueId inputs[] = {x, made.back()};
    const Graph::Output output{100, -1, 1};
    made.push_back(b.graph.first_output(b.graph.add_node(inputs, {&output, 1}, {.cost = 1})));
  }
  if (read_again) made.push_back(b.node({made[1], made[2]}, 100));
  if (first_present) b.graph.set_present(a);
  b.graph.add_target(made.back());
  return std::move(b.graph);
}

TEST_CASE("layout: what takes over lies where what it takes over lay") {
  const auto offsets = [](const Graph& graph) {
    const Schedule schedule = drop_after_last_use(graph, graph.needed_nodes());
    const Layout layout = lay_out(graph, schedule);
    CHECK(layout.size >= simulate(graph, schedule).peak);
    std::vector<Bytes> list;
    for (const Interval& interval : layout.intervals) list.push_back(interval.offset);
    return list;
  };
  const auto all = offsets(takers(false, false));
  CHECK((all[0] == all[1] && all[1] == all[2]));
  const auto read = offsets(takers(true, false));
  CHECK(read[0] == read[1]);
  CHECK(read[1] != read[2]);
  const auto present = offsets(takers(false, true));
  CHECK((present[0] == present[1] && present[1] == present[2]));
}

TEST_CASE("layout: intervals overlap only where one takes over the other") {
  rc::prop("and that is dropped at once", [](std::uint32_t seed) {
    const Graph graph = tests::taking_over(tests::random_graph(seed, 5 + seed % 60), seed);
    const Schedule schedule = drop_after_last_use(graph, graph.needed_nodes());
    const Simulation simulation = simulate(graph, schedule);
    for (const Bytes enough : {Bytes{0}, simulation.peak, 2 * simulation.peak}) {
      const Layout layout = lay_out(graph, schedule, enough);
      RC_ASSERT(layout.size >= simulation.peak);
      RC_ASSERT(timeline_of(layout, schedule) == simulation.timeline);
      for (const Interval& a : layout.intervals) {
        RC_ASSERT(a.offset + a.bytes <= layout.size);
        for (const Interval& b : layout.intervals) {
          if (&a == &b || b.first < a.first || a.last < b.first) continue;
          if (a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset) continue;
          RC_ASSERT(a.offset == b.offset);
          RC_ASSERT(a.bytes == b.bytes);
          RC_ASSERT(b.storage != Interval::workspace);
          const NodeId node = graph.producer(b.storage);
          const int position = graph.takes_over(b.storage);
          RC_ASSERT(position >= 0);
          RC_ASSERT(graph.storage(graph.inputs(node)[static_cast<std::size_t>(position)]) ==
                    a.storage);
          for (std::uint32_t k = b.first + 1; k <= a.last; ++k) {
            RC_ASSERT(schedule.steps[k].kind == Step::Kind::drop);
          }
        }
      }
    }
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

}  // namespace layout_test
