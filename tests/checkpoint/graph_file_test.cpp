#include "checkpoint/planning_files.h"

#include <algorithm>

#include "checkpoint/tape_graph.h"
#include "tests/catch.h"
#include "tests/checkpoint/graphs.h"
#include "tests/checkpoint/tapes.h"
#include "tests/temporary_file.h"

#include <rapidcheck/catch.h>

namespace graph_file_test {

using namespace palimpsest;
using Catch::Matchers::Contains;

namespace {

/// A graph file with the given `nodes`, followed by the members in `more`.
std::string file_of(const std::string& nodes,
                    const std::string& more = R"("backward_begins":null,"targets":[])") {
  return R"({"format":"palimpsest-graph","version":1,"name":"n","nodes":[)" + nodes + "]," + more +
         "}";
}

std::string ending(const std::string& backward_begins, const std::string& targets) {
  return R"("backward_begins":)" + backward_begins + R"(,"targets":[)" + targets + "]";
}

/// A node called "add", which is node 1 after `input`.
std::string second(const std::string& inputs, const std::string& outputs, const std::string& cost,
                   const std::string& more = "") {
  return R"({"name":"x","inputs":[],"outputs":[8],"cost":0,"source":true},{"name":"add","inputs":)" +
         inputs + R"(,"outputs":)" + outputs + R"(,"cost":)" + cost + more + "}";
}

}  // namespace

TEST_CASE("graph files: a graph survives being written and read") {
  const TemporaryFile file;
  rc::prop("on random graphs", [&](std::uint32_t seed) {
    Graph graph = tests::taking_over(tests::random_graph(seed, 3 + seed % 20), seed);
    if (seed % 2 == 0) graph.set_parallel();
    graph.add_node({}, {}, {.opaque = seed % 3 == 0});
    write_graph(graph, file.path());
    Graph read = read_graph(file.path());
    for (ValueId value = 0; value < graph.value_count(); ++value) {
      RC_ASSERT_FALSE(read.is_present(value));
      if (graph.is_present(value)) read.set_present(value);
    }
    RC_ASSERT(read == graph);
    RC_ASSERT(read.structure_hash() == graph.structure_hash());
  });
}

TEST_CASE("graph files: every member is read") {
  const TemporaryFile file;
  file.write(R"({"targets":[3,1],"nodes":[
    {"name":"x \"é\"","inputs":[],"outputs":[8],"cost":0.0,"source":true},
    {"name":"","inputs":[0,0],"outputs":[16,32],"view_of":[-1,-1],"workspace":5,"cost":0.25},
    {"name":"v","inputs":[0,2],"outputs":[99],"view_of":[1],"cost":1e-3,"source":false}],
    "backward_begins":2,"name":"hand made","version":1,"format":"palimpsest-graph"})");
  const Graph graph = read_graph(file.path());
  CHECK(graph.node_count() == 3);
  CHECK(graph.name(0) == "x \"é\"");
  CHECK(graph.name(1).empty());
  CHECK(graph.is_source(0));
  CHECK_FALSE(graph.is_source(2));
  CHECK(graph.resident() == 8);
  CHECK(graph.source_bytes(0) == 8);
  CHECK(graph.inputs(1).size() == 2);
  CHECK(graph.bytes(1) == 16);
  CHECK(graph.workspace(1) == 5);
  CHECK(graph.cost(1) == 0.25);
  CHECK(graph.storage(3) == 2);
  CHECK(graph.bytes(3) == 0);
  CHECK(graph.cost(2) == 1e-3);
  CHECK(graph.backward_begins() == 2);
  CHECK(std::vector(graph.targets().begin(), graph.targets().end()) == std::vector<ValueId>{3, 1});
}

TEST_CASE("graph files: a graph made of a tape says how, and which of its nodes run where") {
  const TemporaryFile file;
  Graph graph;
  graph.set_form({true, false});
  const NodeId first[] = {0};
  const NodeId group[] = {2, 3, 2};
  const Graph::Output output{8};
  const ValueId input = 0;
  graph.add_node({}, {&output, 1}, {.source = true, .tape_nodes = first});
  graph.add_node({&input, 1}, {&output, 1}, {.cost = 1, .name = "a+b", .tape_nodes = group});
  write_graph(graph, file.path());
  const Graph read = read_graph(file.path());
  CHECK(read.form() == GraphForm{true, false});
  CHECK(std::ranges::equal(read.tape_nodes(0), first));
  CHECK(std::ranges::equal(read.tape_nodes(1), group));
  CHECK(ScheduledGraph::of(read) == ScheduledGraph::of(graph));
}

TEST_CASE("graph files: whatever is wrong is an error that names the place") {
  const std::string both = R"({"fused":true,"simplified":true})";
  const auto formed = [](const std::string& form, const std::string& nodes) {
    return file_of(nodes, R"("form":)" + form + "," + ending("null", ""));
  };
  const struct {
    std::string content;
    std::string words;
  } rows[] = {
      {"not json", ", byte 2: not JSON, or truncated: 'o' is unexpected here; write it again"},
      {"{\"a\":\x01}", ", byte 6: not JSON, or truncated: the byte 0x01 is unexpected here"},
      {"{\"a\":", ", byte 6: not JSON, or truncated: the text ends too early; write it again"},
      {"{\"a\":1e999}", ": the number '1e999' is too large for 64 bits; give a smaller one"},
      {file_of("") + "x", "byte 100: not JSON"},
      {"[]", "not a JSON object"},
      {"{}", "\"format\" is missing"},
      {R"({"format":3})", "format: 3 is not a string"},
      {R"({"format":"png"})", "format: \"png\" is not \"palimpsest-graph\""},
      {R"({"format":"palimpsest-graph"})", "\"version\" is missing"},
      {R"({"format":"palimpsest-graph","version":2})", "version: 2 is unknown; this library reads"},
      {R"({"format":"palimpsest-graph","version":1.5})", "version: 1.5 is not a whole number"},
      {R"({"format":"palimpsest-graph","version":1})", "\"name\" is missing"},
      {file_of("", R"("colour":1)"), "\"colour\" is unknown; the keys are format, version, name"},
      {file_of("", R"("version":1)"), "\"version\" occurs twice"},
      {file_of("", R"("targets":[])"), "\"backward_begins\" is missing"},
      {file_of("", R"("backward_begins":null)"), "\"targets\" is missing"},
      {file_of("", R"("backward_begins":null,"targets":7)"), "targets: 7 is not a list"},
      {file_of("", ending("1", "")), "backward_begins: there is no node 1; the graph has 0 nodes"},
      {file_of("", ending("-1", "")), "backward_begins: -1 is negative"},
      {file_of("", ending("null", "0")), "targets[0]: value 0 does not exist yet"},
      {file_of(second("[0]", "[1,2]", "1"), ending("null", "2,0,3")),
       "targets[2]: value 3 does not exist yet"},
      {file_of("7"), "nodes[0]: 7 is not an object"},
      {file_of("{}"), "nodes[0]: \"name\" is missing"},
      {file_of(R"({"name":1})"), "nodes[0].name: 1 is not a string"},
      {file_of(R"({"name":"a"})"), "nodes[0] (a): \"inputs\" is missing"},
      {file_of(R"({"name":"a","inputs":[]})"), "nodes[0] (a): \"outputs\" is missing"},
      {file_of(R"({"name":"a","inputs":[],"outputs":[]})"), "nodes[0] (a): \"cost\" is missing"},
      {file_of(second("[0]", "[8]", "1", R"(,"cost":1)")), "nodes[1] (add): \"cost\" occurs twice"},
      {file_of(second("[0]", "[8]", "1", R"(,"size":1)")), "nodes[1] (add): \"size\" is unknown"},
      {file_of(second("[0,1]", "[8]", "1")),
       "nodes[1] (add).inputs[1]: value 1 does not exist yet; the number of earlier values is 1"},
      {file_of(second("[-1]", "[8]", "1")), "nodes[1] (add).inputs[0]: -1 is negative"},
      {file_of(second("[0.0]", "[8]", "1")), "inputs[0]: 0.0 is not a whole number"},
      {file_of(second("0", "[8]", "1")), "nodes[1] (add).inputs: 0 is not a list"},
      {file_of(second("[0]", "[8,-4]", "1")),
       "nodes[1] (add).outputs[1]: -4 is negative; give 0 or more"},
      {file_of(second("[0]", "[18446744073709551615]", "1")),
       "18446744073709551615 is not a whole"},
      {file_of(second("[0]", "[2305843009213693952]", "1")),
       "outputs[0]: the sum of all sizes exceeds"},
      {file_of(second("[0]", "[\"8\"]", "1")), "outputs[0]: this string is not a whole number"},
      {file_of(second("[0]", "[8]", "-0.5")), "nodes[1] (add).cost: -0.5 is negative"},
      {file_of(second("[0]", "[8]", "null")), "nodes[1] (add).cost: this null is not a number"},
      {file_of(second("[0]", "[8]", "1e999")), "1e999"},
      {file_of(second("[0]", "[8]", "1e308") +
               R"(,{"name":"b","inputs":[],"outputs":[],"cost":1e308})"),
       "nodes[2] (b).cost: the sum of all costs is infinite"},
      {file_of(second("[0]", "[8]", "1", R"(,"workspace":-1)")), "workspace: -1 is negative"},
      {file_of(second("[0]", "[8]", "1", R"(,"source":1)")), "source: 1 is not true or false"},
      {file_of(second("[0]", "[8]", "1", R"(,"source":true)")), "inputs: a source has no inputs"},
      {file_of(second("[0]", "[8]", "1", R"(,"view_of":[1])")),
       "nodes[1] (add).view_of[0]: the node has no input 1; it has 1"},
      {file_of(second("[0]", "[8]", "1", R"(,"view_of":[-2])")),
       "view_of[0]: the node has no input -2"},
      {file_of(second("[0]", "[8]", "1", R"(,"view_of":[])")), "view_of: 0 entries for 1 outputs"},
      {file_of(second("[0]", "[1152921504606846977]", "1")), "more bytes than any memory has"},
      {file_of(second("[0]", "[8]", "1", R"(,"tape_nodes":[1])")),
       "nodes[1] (add).tape_nodes: the graph has no \"form\""},
      {formed("{}", ""), "form: \"fused\" is missing"},
      {formed(R"({"fused":1,"simplified":true})", ""), "form.fused: 1 is not true or false"},
      {formed(both, R"({"name":"a","inputs":[],"outputs":[],"cost":0})"),
       "nodes[0] (a): \"tape_nodes\" is missing"},
      {formed(both, R"({"name":"a","inputs":[],"outputs":[],"cost":0,"tape_nodes":[4294967295]})"),
       "tape_nodes[0]: 4294967295 is too large for a node id; give less than 4294967295"},
  };
  const TemporaryFile file;
  for (const auto& row : rows) {
    file.write(row.content);
    CHECK_THROWS_WITH(read_graph(file.path()),
                      Contains("[read_graph] " + file.path()) && Contains(row.words));
  }
  CHECK_THROWS_WITH(read_graph("/nowhere/graph.json"), Contains("cannot open /nowhere/graph.json"));
  CHECK_THROWS_WITH(read_graph("/tmp"), Contains("/tmp is a folder"));
  CHECK_THROWS_AS(write_graph(Graph(), "/nowhere/graph.json"), FileError);
}

TEST_CASE("graph files: a file cut anywhere is an error") {
  const TemporaryFile file;
  write_graph(tests::chain(3), file.path());
  const std::string whole = file.read();
  for (std::size_t length = 0; length + 1 < whole.size(); ++length) {
    file.write(whole.substr(0, length));
    CHECK_THROWS_WITH(read_graph(file.path()), Contains(", byte " + std::to_string(length + 1) +
                                                        ": not JSON, or truncated"));
  }
}

TEST_CASE("graph files: with any byte changed, a file is refused or read for what it is") {
  const TemporaryFile file;
  write_graph(tests::chain(3), file.path());
  const std::string whole = file.read();
  int refused = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char c : {'0', '9', '-', '.', ',', '"', '}', '\xff'}) {
      std::string changed = whole;
      changed[at] = c;
      file.write(changed);
      try {
        const Graph graph = read_graph(file.path());
        write_graph(graph, file.path());
        CHECK(read_graph(file.path()) == graph);
      } catch (const FileError&) {
        ++refused;
      }
    }
  }
  CHECK(refused > static_cast<int>(whole.size()));
}

TEST_CASE("graph files: a name that is not UTF-8 is an error") {
  const TemporaryFile file;
  Graph graph;
  graph.add_node({}, {}, {.name = "fine"});
  graph.add_node({}, {}, {.name = "\xff"});
  CHECK_THROWS_WITH(write_graph(graph, file.path()), Contains("name of node 1 is not UTF-8"));
}

TEST_CASE("graph files: a tape is saved as planners see it, but for what is present") {
  const TemporaryFile file;
  Tape tape;
  const Var x = tape.parameter(Tensor::ones({8}), "x");
  const Var y = tests::record(tape, tests::plain, {x}).named("y");
  const Var z = tests::record(tape, tests::alias, {y});
  tape.set_buffer(y.id(), allocate_buffer(32));
  const ValueId target = z.id();
  write_graph(tape, {&target, 1}, file.path(), z.node());
  Graph graph = read_graph(file.path());
  CHECK_FALSE(graph.is_present(y.id()));
  CHECK(graph.name(y.node()) == "y");
  CHECK(graph.resident() == 32);
  CHECK(graph.backward_begins() == z.node());
  graph.set_present(y.id());
  CHECK(graph == graph_of(tape, {&target, 1}, 1, z.node()));
}

TEST_CASE("graph files: a hundred thousand nodes") {
  const TemporaryFile file;
  const Graph graph = tests::chain(50'000);
  write_graph(graph, file.path());
  CHECK(read_graph(file.path()) == graph);
}

}  // namespace graph_file_test
