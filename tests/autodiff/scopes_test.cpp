#include <memory>
#include <string>
#include <vector>

#include "autodiff/composition.h"
#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/unary_functions.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/unary.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/tape_graph.h"
#include "tests/catch.h"

namespace palimpsest::scopes_test {
namespace {

std::string_view scope_of(const Var& x) { return x.tape().scope_of(x.node()); }
std::string_view stage_of(const Var& x) { return x.tape().stage_of(x.node()); }

TEST_CASE("a module's path is not repeated by the modules in it") {
  Tape tape;
  const Var x = tape.constant(Tensor::ones({2}));
  const auto in_modules = [&](const std::vector<std::string>& paths) {
    std::vector<std::unique_ptr<Tape::ModuleScope>> open;
    for (const std::string& path : paths) {
      open.push_back(std::make_unique<Tape::ModuleScope>(tape, path));
    }
    const std::string scope(scope_of(exp(x)));
    while (!open.empty()) open.pop_back();
    return scope;
  };
  CHECK(in_modules({"encoder/0", "encoder/0/attention", "encoder/0/attention/query"}) ==
        "encoder/0/attention/query");
  CHECK(in_modules({"encoder/0", "encoder/0"}) == "encoder/0");
  CHECK(in_modules({"encoder/0", "decoder/0"}) == "encoder/0/decoder/0");  // shared parameters
  CHECK(in_modules({"encoder/1", "encoder/10"}) == "encoder/1/encoder/10");
  CHECK(in_modules({"my_encoder", "encoder/0"}) == "my_encoder/encoder/0");
  CHECK(in_modules({"a", ""}) == "a");
  CHECK(in_modules({""}) == "");
  CHECK(scope_of(exp(x)) == "");
}

TEST_CASE("modules nest in scopes of the user, who may have opened the same ones") {
  Tape tape;
  const Var x = tape.constant(Tensor::ones({2}));
  const auto outer = tape.scope("model");
  Var inside, own;
  {
    const auto block = tape.scope("encoder");
    const Tape::ModuleScope module(tape, "encoder/0");
    inside = exp(x);
    const auto inner = tape.scope("scores");
    own = exp(x);
  }
  const Var after = exp(x);
  CHECK(scope_of(inside) == "model/encoder/0");
  CHECK(scope_of(own) == "model/encoder/0/scores");
  CHECK(scope_of(after) == "model");
  CHECK(stage_of(inside) == "model/encoder");
  CHECK(stage_of(own) == "model/encoder/scores");
  CHECK(stage_of(after) == "model");
}

TEST_CASE("adjoints have the scopes of what they differentiate, unless they are in one") {
  Tape tape;
  const Var x = tape.parameter(Tensor::vector({1, 2}));
  Var y;
  {
    const auto scope = tape.scope("layer");
    y = exp(x);
  }
  const Var loss = sum(y * y);
  const NodeId forward = tape.node_count();
  const Var outside = gradient(loss, x);
  const NodeId between = tape.node_count();
  for (NodeId node = forward; node < between; ++node) {
    CAPTURE(tape.describe(node));
    CHECK(tape.inherits_scope(node) == (tape.scope_of(node) == "layer"));
    CHECK(tape.stage_of(node) == "");
  }
  CHECK(scope_of(outside) == "layer");
  const auto scope = tape.scope("backward");
  const Var inside = gradient(loss, x);
  for (NodeId node = between; node < tape.node_count(); ++node) {
    CHECK(tape.scope_of(node) == "backward");
    CHECK_FALSE(tape.inherits_scope(node));
  }
  CHECK(same_bits(inside.value(), outside.value()));
  // Those outside are none of the nodes recorded in the scope.
  const std::vector<Segment> segments = segments_in_scope(tape, "layer");
  REQUIRE(segments.size() == 1);
  CHECK(segments[0].first == y.node());
  CHECK(segments[0].last == y.node());
}

TEST_CASE("the nodes of a checkpointed function are copied with scopes and stages") {
  Tape tape;
  const Var x = tape.parameter(Tensor::vector({1, 2}));
  const auto function = [](const Var& v) {
    const Tape::ModuleScope module(v.tape(), "block");
    return exp(sin(v));
  };
  const auto scope = tape.scope("user");
  const Var y = checkpoint(function, x);
  const Var loss = sum(y);
  const NodeId forward = tape.node_count();
  (void)gradient(loss, x);
  std::uint32_t in_block = 0;
  for (NodeId node = forward; node < tape.node_count(); ++node) {
    if (tape.scope_of(node) != "user/block") continue;
    CHECK(tape.stage_of(node) == "user");
    ++in_block;
  }
  CHECK(in_block >= 2);
}

}  // namespace
}  // namespace palimpsest::scopes_test
