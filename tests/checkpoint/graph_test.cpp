#include "checkpoint/graph.h"

#include <cmath>

#include "tests/catch.h"
#include "tests/checkpoint/graphs.h"

namespace graph_test {

using namespace palimpsest;
using Catch::Matchers::Contains;
using palimpsest::tests::GraphBuilder;

namespace {

std::string error_of(std::vector<ValueId> inputs, std::vector<Graph::Output> outputs,
                     Graph::Traits traits) {
  Graph graph;
  const Graph::Output output{8, -1};
  graph.add_node({}, {&output, 1}, {.source = true, .name = "x"});
  try {
    graph.add_node(inputs, outputs, std::move(traits));
  } catch (const ArgumentError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("graph: nodes and values are numbered in order") {
  GraphBuilder b;
  const ValueId x = b.source(8);
  const ValueId a = b.node({x, x}, 16, 2.5, 4);
  const std::vector<Graph::Output> two{{32, -1}, {8, -1}};
  const NodeId split = b.graph.add_node(std::vector{a}, two, {.cost = 1, .name = "split"});
  const Graph& g = b.graph;
  CHECK(g.node_count() == 3);
  CHECK(g.value_count() == 4);
  CHECK(g.inputs(1).size() == 2);
  CHECK(g.inputs(1)[1] == x);
  CHECK(g.first_output(split) == 2);
  CHECK(g.output_count(split) == 2);
  CHECK(g.output_count(0) == 1);
  CHECK(g.producer(3) == split);
  CHECK(g.cost(1) == 2.5);
  CHECK(g.workspace(1) == 4);
  CHECK(g.is_source(0));
  CHECK(g.is_source_value(x));
  CHECK(g.bytes(x) == 0);
  CHECK(g.source_bytes(x) == 8);
  CHECK(g.source_bytes(a) == 0);
  CHECK(g.resident() == 8);
  CHECK(g.bytes(3) == 8);
  CHECK(g.describe(1) == "#1");
  CHECK(g.name(1).empty());
  CHECK(g.name(split) == "split");
  CHECK(g.describe(split) == "split");
}

TEST_CASE("graph: views share the storage of their root") {
  GraphBuilder b;
  const ValueId x = b.source(8);
  const ValueId a = b.node({x}, 16);
  const ValueId inner = b.view(b.view(a));
  CHECK(b.graph.storage(inner) == a);
  CHECK(b.graph.bytes(inner) == 0);
  CHECK(b.graph.storage(b.view(x)) == x);
}

TEST_CASE("graph: malformed nodes are errors that name them") {
  const std::vector<Graph::Output> one{{8, -1}};
  CHECK_THAT(error_of({7}, one, {.cost = 1, .name = "add"}),
             Contains("node 1 (add)") && Contains("value 7") && Contains("does not exist"));
  CHECK_THAT(error_of({0}, one, {.cost = -1}), Contains("node 1 cannot cost -1 seconds"));
  CHECK_THAT(error_of({0}, one, {.cost = INFINITY}),
             Contains("cannot cost inf") && Contains("give a finite"));
  CHECK_THAT(error_of({0}, one, {.cost = 1, .workspace = -1}),
             Contains("workspace of -1 bytes; give 0 or more"));
  CHECK_THAT(error_of({0}, {{-8, -1}}, {}), Contains("output of -8 bytes; give 0 or more"));
  CHECK_THAT(error_of({0}, {{0, 1}}, {}), Contains("view of input 1; the number of inputs is 1"));
  CHECK_THAT(error_of({0}, {{0, -2}}, {}), Contains("view of input -2"));
  CHECK_THAT(error_of({0}, one, {.source = true}), Contains("source"));
  CHECK_THAT(error_of({0}, {{Bytes{1} << 60, -1}, {1, -1}}, {}), Contains("any memory"));
  Graph graph;
  CHECK_THROWS_AS(graph.add_target(0), ArgumentError);
  CHECK_THROWS_AS(graph.set_present(0), ArgumentError);
}

TEST_CASE("graph: needed nodes are the ancestors of the targets up to what is present") {
  GraphBuilder b;
  const ValueId x = b.source();
  const ValueId a = b.node({x}, 8, 1);
  const ValueId unused = b.node({a}, 8, 10);
  const ValueId c = b.node({a}, 8, 100);
  const ValueId d = b.node({c, x}, 8, 1000);
  b.graph.add_target(d);
  b.graph.add_target(d);
  CHECK(b.graph.targets().size() == 1);
  CHECK(b.graph.needed_nodes() == std::vector<NodeId>{1, 3, 4});
  CHECK(b.graph.one_pass_cost() == 1101);
  b.graph.set_present(c);
  CHECK(b.graph.needed_nodes() == std::vector<NodeId>{4});
  b.graph.set_present(d);
  CHECK(b.graph.needed_nodes().empty());
  CHECK_FALSE(b.graph.is_target(unused));
}

TEST_CASE("graph: the hash follows everything but names") {
  const auto make = [](double cost, Bytes bytes, bool present, const char* name) {
    GraphBuilder b;
    const ValueId x = b.source();
    const Graph::Output output{bytes, -1};
    b.graph.add_node(std::vector{x}, {&output, 1}, {.cost = cost, .name = name});
    if (present) b.graph.set_present(1);
    return b.graph;
  };
  const std::uint64_t hash = make(1, 8, false, "a").structure_hash();
  CHECK(make(1, 8, false, "b").structure_hash() == hash);
  CHECK(make(2, 8, false, "a").structure_hash() != hash);
  CHECK(make(1, 9, false, "a").structure_hash() != hash);
  CHECK(make(1, 8, true, "a").structure_hash() != hash);
  Graph graph = make(1, 8, false, "a");
  graph.add_target(1);
  const std::uint64_t targeted = graph.structure_hash();
  CHECK(targeted != hash);
  graph.set_backward_begins(1);
  CHECK(graph.structure_hash() != targeted);
}

}  // namespace graph_test
