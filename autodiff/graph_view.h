#pragma once

#include <boost/graph/graph_traits.hpp>
#include <boost/graph/properties.hpp>
#include <boost/iterator/counting_iterator.hpp>
#include <boost/iterator/transform_iterator.hpp>
#include <boost/property_map/property_map.hpp>
#include <span>
#include <utility>
#include <vector>

#include "autodiff/export.h"
#include "autodiff/tape.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Adaptor that presents a tape to Boost.Graph. Vertices are nodes. An edge runs from the producer
/// of a value to every node that reads it, one edge per operand. Models VertexListGraph,
/// EdgeListGraph and BidirectionalGraph.
///
/// In-edges are read from the tape. Out-edges need an index, built by the constructor in
/// O(nodes + edges); a view does not see nodes recorded later. The tape must outlive it.
class TapeView {
 public:
  struct Edge {
    NodeId source = none;
    NodeId target = none;
    std::uint32_t operand = 0;  ///< position among the target's inputs
    bool operator==(const Edge& other) const {
      return target == other.target && operand == other.operand;
    }
  };

  explicit TapeView(const Tape& tape) : tape_(&tape), first_reader_(tape.node_count() + 1) {
    const std::uint32_t nodes = tape.node_count();
    for (NodeId node = 0; node < nodes; ++node) {
      for (const ValueId input : tape.inputs(node)) ++first_reader_[tape.producer(input) + 1];
    }
    for (NodeId node = 0; node < nodes; ++node) first_reader_[node + 1] += first_reader_[node];
    readers_.resize(first_reader_[nodes]);
    std::vector<std::uint32_t> end(first_reader_.begin(), first_reader_.end() - 1);
    for (NodeId node = 0; node < nodes; ++node) {
      std::uint32_t operand = 0;
      for (const ValueId input : tape.inputs(node)) {
        readers_[end[tape.producer(input)]++] = {node, operand++};
      }
    }
  }

  /// The tape, and the number of its nodes when the view was made.
  const Tape& tape() const { return *tape_; }
  std::uint32_t node_count() const { return static_cast<std::uint32_t>(first_reader_.size()) - 1; }

  /// The values that a node reads, and the edge that ends in one of these operands.
  std::span<const ValueId> inputs(NodeId node) const { return tape_->inputs(node); }
  Edge in_edge(NodeId node, std::uint32_t operand) const {
    return {tape_->producer(inputs(node)[operand]), node, operand};
  }
  /// Edges are numbered by source. The out-edges of `node` have the numbers [first_out(node),
  /// first_out(node + 1)).
  Edge edge(std::uint32_t number) const {
    const Reader& reader = readers_[number];
    return in_edge(reader.node, reader.operand);
  }
  std::uint32_t first_out(NodeId node) const { return first_reader_[node]; }
  std::uint32_t edge_count() const { return first_reader_.back(); }

 private:
  struct Reader {
    NodeId node;
    std::uint32_t operand;
  };
  const Tape* tape_;
  std::vector<std::uint32_t> first_reader_;  // by node: where its row of `readers_` begins
  std::vector<Reader> readers_;
};

namespace detail {

struct EdgeByNumber {
  const TapeView* view = nullptr;
  TapeView::Edge operator()(std::uint32_t number) const { return view->edge(number); }
};
struct EdgeByOperand {
  const TapeView* view = nullptr;
  NodeId node = none;
  TapeView::Edge operator()(std::uint32_t operand) const { return view->in_edge(node, operand); }
};

using Counter = boost::counting_iterator<std::uint32_t>;
template <class Function>
using EdgeIterator = boost::transform_iterator<Function, Counter, TapeView::Edge, TapeView::Edge>;

template <class Function>
std::pair<EdgeIterator<Function>, EdgeIterator<Function>> edge_range(Function function,
                                                                     std::size_t begin,
                                                                     std::size_t end) {
  return {{Counter(static_cast<std::uint32_t>(begin)), function},
          {Counter(static_cast<std::uint32_t>(end)), function}};
}

}  // namespace detail

/// Functions required by Boost.Graph's concepts, found by argument-dependent lookup. They return
/// ranges as pairs of iterators. Edges are ordered by source, then by reader and operand.

inline std::pair<detail::Counter, detail::Counter> vertices(const TapeView& view) {
  return {detail::Counter(0), detail::Counter(view.node_count())};
}
inline std::uint32_t num_vertices(const TapeView& view) { return view.node_count(); }
inline auto edges(const TapeView& view) {
  return detail::edge_range(detail::EdgeByNumber{&view}, 0, view.edge_count());
}
inline std::uint32_t num_edges(const TapeView& view) { return view.edge_count(); }
inline NodeId source(const TapeView::Edge& edge, const TapeView&) { return edge.source; }
inline NodeId target(const TapeView::Edge& edge, const TapeView&) { return edge.target; }
inline auto in_edges(NodeId node, const TapeView& view) {
  return detail::edge_range(detail::EdgeByOperand{&view, node}, 0, view.inputs(node).size());
}
inline auto out_edges(NodeId node, const TapeView& view) {
  return detail::edge_range(detail::EdgeByNumber{&view}, view.first_out(node),
                            view.first_out(node + 1));
}
inline std::uint32_t in_degree(NodeId node, const TapeView& view) {
  return static_cast<std::uint32_t>(view.inputs(node).size());
}
inline std::uint32_t out_degree(NodeId node, const TapeView& view) {
  return view.first_out(node + 1) - view.first_out(node);
}
inline std::uint32_t degree(NodeId node, const TapeView& view) {
  return in_degree(node, view) + out_degree(node, view);
}
inline boost::identity_property_map get(boost::vertex_index_t, const TapeView&) { return {}; }
inline NodeId get(boost::vertex_index_t, const TapeView&, NodeId node) { return node; }

}  // namespace palimpsest

// NOLINTBEGIN(readability-identifier-naming): the names are Boost's.
template <>
struct boost::graph_traits<palimpsest::TapeView> {
  struct traversal_category : boost::vertex_list_graph_tag,
                              boost::edge_list_graph_tag,
                              boost::bidirectional_graph_tag {};
  using vertex_descriptor = palimpsest::NodeId;
  using edge_descriptor = palimpsest::TapeView::Edge;
  using directed_category = boost::bidirectional_tag;
  using edge_parallel_category = boost::allow_parallel_edge_tag;
  using vertex_iterator = palimpsest::detail::Counter;
  using edge_iterator = palimpsest::detail::EdgeIterator<palimpsest::detail::EdgeByNumber>;
  using out_edge_iterator = edge_iterator;
  using in_edge_iterator = palimpsest::detail::EdgeIterator<palimpsest::detail::EdgeByOperand>;
  using vertices_size_type = std::uint32_t;
  using degree_size_type = std::uint32_t;
  using edges_size_type = std::uint32_t;
  static vertex_descriptor null_vertex() { return palimpsest::none; }
};

template <>
struct boost::property_map<palimpsest::TapeView, boost::vertex_index_t> {
  using type = boost::identity_property_map;
  using const_type = type;
};
// NOLINTEND(readability-identifier-naming)
