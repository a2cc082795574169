#include "checkpoint/dot.h"

#include <sstream>

#include "tests/catch.h"
#include "tests/checkpoint/tapes.h"

namespace dot_test {

using namespace palimpsest;
using namespace palimpsest::tests;
using Catch::Matchers::Contains;

TEST_CASE("dot: a tape under a schedule, coloured by what happens to each node") {
  Tape tape;
  const Var w = tape.parameter(Tensor::ones({8}), "weight \"w\"");
  const Var c = tape.constant(Tensor::ones({8}));
  const Var again = record(tape, plain, {w, c});
  const Var once = record(tape, alias, {again});
  record(tape, plain, {once});
  const auto compute = Step::compute;
  std::ostringstream stream;
  write_dot(stream, tape,
            {{compute(again.node()), Step::drop(again.id()), compute(again.node()),
              compute(once.node())}});
  const std::string text = stream.str();
  CHECK_THAT(text, Contains("digraph") && Contains("0->2") && Contains("1->2"));
  CHECK_THAT(text, Contains("weight \\\"w\\\" parameter #0\\nf32 (8)\", fillcolor=lightblue"));
  CHECK_THAT(text, Contains("constant #1\\nf32 (8)\", fillcolor=lightgrey"));
  CHECK_THAT(text, Contains("plain #2\\nf32 (8)\\ncomputed 2 times\", fillcolor=orange"));
  CHECK_THAT(text, Contains("alias #3\\nf32 (8)\", fillcolor=palegreen"));
  CHECK_THAT(text, Contains("plain #4\\nf32 (8)\", fillcolor=white"));
  CHECK_THAT(text, Contains("2->3") && Contains("[style=dashed]"));
}

TEST_CASE("dot: a name with backslashes, quotes and lines stays within its string") {
  Tape tape;
  tape.parameter(Tensor::ones({2}), "a\\\"b\\");
  tape.parameter(Tensor::ones({2}), "two\nlines");
  std::ostringstream stream;
  write_dot(stream, tape, Schedule{});
  CHECK_THAT(stream.str(), Contains(R"x([label="a\\\"b\\ parameter #0\nf32 (2)", fillcolor)x"));
  CHECK_THAT(stream.str(), Contains(R"x([label="two\nlines parameter #1\nf32 (2)", fillcolor)x"));
}

}  // namespace dot_test
