#include "checkpoint/tape_graph.h"

#include "checkpoint/plan.h"
#include "tests/catch.h"
#include "tests/checkpoint/tapes.h"

namespace tape_graph_test {

using namespace palimpsest;
using namespace palimpsest::tests;
using Catch::Matchers::Contains;
using Catch::Matchers::WithinRel;

namespace {

using Pairs = std::vector<std::pair<NodeId, NodeId>>;

Pairs pairs(const std::vector<Segment>& segments) {
  Pairs result;
  for (const auto& [first, last] : segments) result.emplace_back(first, last);
  return result;
}

}  // namespace

TEST_CASE("graph_of: numbers, sizes, costs, views and what is present") {
  Tape tape;
  const Var x = tape.parameter(Tensor::ones({8}), "x");
  const Var a = record(tape, scratched, {x}, {8, 3});
  const Var v = record(tape, alias, {a}, {8});
  const Var b = record(tape, plain, {v, a.output(1)}, {5});
  b.named("last");
  tape.set_buffer(a.id(), allocate_buffer(32));
  const ValueId target = b.id();
  const Graph graph = graph_of(tape, {&target, 1}, 3, a.node());

  CHECK(graph.node_count() == tape.node_count());
  CHECK(graph.value_count() == tape.value_count());
  CHECK(graph.is_source(x.node()));
  CHECK(graph.bytes(a.id()) == 32);
  CHECK(graph.bytes(a.id() + 1) == 12);
  CHECK(graph.workspace(a.node()) == 192);
  CHECK_THAT(graph.cost(a.node()), WithinRel(1e9 / 50e9 + 1e6 / 10e9 + 1e-6, 1e-12));
  CHECK(graph.storage(v.id()) == a.id());
  CHECK(graph.cost(v.node()) == 0);
  CHECK(graph.inputs(b.node())[1] == a.id() + 1);
  CHECK(graph.is_present(a.id()));
  CHECK_FALSE(graph.is_present(a.id() + 1));
  CHECK_FALSE(graph.is_present(x.id()));
  CHECK(graph.is_target(b.id()));
  CHECK(graph.backward_begins() == a.node());
  CHECK(graph.describe(a.node()) == "scratched");
  CHECK(graph.describe(b.node()) == "last");
  const ValueId missing = 99;
  CHECK_THROWS_AS(graph_of(tape, {&missing, 1}), ArgumentError);
}

TEST_CASE("segments_in_scope: whole components, anywhere in the path") {
  Tape tape;
  Var x = tape.constant(Tensor::ones({8}));  // node 0
  const auto step = [&] { x = record(tape, plain, {x}); };
  for (const char* layer : {"layer0", "layer1"}) {
    const auto outer = tape.scope(layer);
    {
      const auto inner = tape.scope("attention");
      step();
      const auto deeper = tape.scope("heads");
      step();
    }
    const auto other = tape.scope("attention_norm");
    if (std::string_view(layer) == "layer1") step();
  }
  {
    const auto again = tape.scope("attention");
    step();
  }
  step();
  CHECK(pairs(segments_in_scope(tape, "attention")) == Pairs{{1, 2}, {3, 4}, {6, 6}});
  CHECK(pairs(segments_in_scope(tape, "layer1")) == Pairs{{3, 5}});
  CHECK(pairs(segments_in_scope(tape, "layer1/attention")) == Pairs{{3, 4}});
  CHECK(pairs(segments_in_scope(tape, "heads")) == Pairs{{2, 2}, {4, 4}});
  CHECK_THROWS_AS(segments_in_scope(tape, ""), ArgumentError);
  CHECK_THROWS_WITH(segments_in_scope(tape, "norm"),
                    Contains("'norm'") && Contains("layer0/attention, layer0/attention/heads") &&
                        Contains("layer1/attention_norm"));
  CHECK_THROWS_WITH(segments_in_scope(Tape(), "norm"), Contains("the scopes are: none"));

  const ValueId target = x.id();
  const Graph graph = graph_of(tape, {&target, 1});
  CHECK_NOTHROW(make_plan(graph, *selected(segments_in_scope(tape, "attention"))));
}

TEST_CASE("graph_of: a tape of a million nodes") {
  Tape tape;
  Var x = tape.constant(Tensor::ones({8}));
  for (int k = 0; k < 1'000'000; ++k) x = record(tape, plain, {x});
  const ValueId target = x.id();
  const Graph graph = graph_of(tape, {&target, 1});
  CHECK(graph.node_count() == 1'000'001);
  CHECK(make_plan(graph, *automatic()).predicted_peak() == 128);
}

}  // namespace tape_graph_test
