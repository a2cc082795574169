#include "autodiff/graph_view.h"

#include <boost/concept/assert.hpp>
#include <boost/graph/graph_concepts.hpp>
#include <boost/graph/topological_sort.hpp>
#include <numeric>
#include <random>

#include "tests/catch.h"
#include "tests/checkpoint/tapes.h"

namespace graph_view_test {

using namespace palimpsest;
using namespace palimpsest::tests;

BOOST_CONCEPT_ASSERT((boost::VertexListGraphConcept<TapeView>));
BOOST_CONCEPT_ASSERT((boost::EdgeListGraphConcept<TapeView>));
BOOST_CONCEPT_ASSERT((boost::BidirectionalGraphConcept<TapeView>));

TEST_CASE("tape view: edges are the operands, seen from both ends") {
  Tape tape;
  const Var x = tape.constant(Tensor::ones({8}));
  const Var a = record(tape, plain, {x, x}, {8, 8});
  const Var b = record(tape, plain, {a.output(1), x});
  const TapeView view(tape);
  CHECK(num_vertices(view) == 3);
  CHECK(num_edges(view) == 4);
  CHECK(out_degree(x.node(), view) == 3);
  CHECK(in_degree(b.node(), view) == 2);
  CHECK(degree(a.node(), view) == 3);
  const auto [in, in_end] = in_edges(b.node(), view);
  CHECK(std::distance(in, in_end) == 2);
  CHECK(source(*in, view) == a.node());
  CHECK(target(*in, view) == b.node());
  std::vector<TapeView::Edge> from_x;
  for (auto [edge, end] = out_edges(x.node(), view); edge != end; ++edge) from_x.push_back(*edge);
  CHECK(from_x == std::vector<TapeView::Edge>{{0, 1, 0}, {0, 1, 1}, {0, 2, 1}});
  CHECK(std::distance(edges(view).first, edges(view).second) == 4);
  CHECK((*std::next(edges(view).first, 3)).source == a.node());
}

TEST_CASE("tape view: a topological sort keeps to the order of recording") {
  std::mt19937 random(7);
  Tape tape;
  Var last = tape.constant(Tensor::ones({8}));
  for (int k = 0; k < 200; ++k) {
    last =
        record(tape, plain, {last, tape.var(static_cast<ValueId>(random() % tape.value_count()))});
  }
  for (int k = 0; k < 50; ++k) {
    record(tape, plain, {tape.var(static_cast<ValueId>(random() % tape.value_count()))});
  }
  const TapeView view(tape);
  std::vector<NodeId> order;
  boost::topological_sort(view, std::back_inserter(order));  // dependents first
  REQUIRE(order.size() == tape.node_count());
  std::vector<std::size_t> place(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) place[order[k]] = k;
  for (auto [edge, end] = edges(view); edge != end; ++edge) {
    CHECK(place[(*edge).target] < place[(*edge).source]);
    CHECK((*edge).source < (*edge).target);
  }
  // The first 201 nodes are a chain, which has one order only.
  std::erase_if(order, [](NodeId node) { return node > 200; });
  std::vector<NodeId> recorded(201);
  std::iota(recorded.rbegin(), recorded.rend(), 0u);
  CHECK(order == recorded);
}

}  // namespace graph_view_test
