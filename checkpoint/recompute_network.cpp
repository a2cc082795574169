#include "checkpoint/recompute_network.h"

#include <algorithm>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <cmath>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

namespace palimpsest {

namespace {

// Capacities are integers, rounded down, so that flows are exact and never above the true value.
using Capacity = std::int64_t;
constexpr Capacity everything = Capacity{1} << 50;  // all extra seconds together
constexpr Capacity infinite = Capacity{1} << 52;

using Vertex = std::uint32_t;
constexpr Vertex source = 0;
constexpr Vertex sink = 1;

using FlowGraph =
    boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, boost::no_property,
                                       boost::no_property, Vertex, std::uint32_t>;
using Edge = boost::graph_traits<FlowGraph>::edge_descriptor;

/// The van der Corput sequence: the binary digits of `index`, mirrored at the point.
double van_der_corput(std::size_t index) {
  double result = 0;
  for (double digit = 0.5; index > 0; index >>= 1, digit /= 2)
    result += (index & 1) != 0 ? digit : 0;
  return result;
}

template <class Values>
auto by_edge(Values& values, const FlowGraph& graph) {
  return boost::make_iterator_property_map(values.begin(), get(boost::edge_index, graph));
}
template <class Values>
auto by_vertex(Values& values, const FlowGraph& graph) {
  return boost::make_iterator_property_map(values.begin(), get(boost::vertex_index, graph));
}

}  // namespace

/// The network in the form that Boost.Graph needs.
struct RecomputeNetwork::Flow {
  struct Arc {
    Vertex from, to;
    Capacity capacity;
  };
  struct Storage {
    ValueId root;
    Bytes bytes;
    double spread;    ///< in [0, 1), evenly spread over the storages of any part of the graph
    std::size_t arc;  ///< to its producer
  };
  struct Again {
    Vertex vertex;
    double seconds;
    std::size_t arc;  ///< to the sink
  };

  Vertex vertices = 2;
  std::vector<Arc> arcs;
  std::vector<Storage> storages;
  std::vector<Again> nodes;
  double scale = 0;  ///< capacity of a second
  FlowGraph graph;
  std::vector<std::uint32_t> position;  ///< index of an arc among the edges
  std::vector<Edge> reverse;            ///< by position

  std::size_t add(Vertex from, Vertex to, Capacity capacity) {
    arcs.push_back({from, to, capacity});
    return arcs.size() - 1;
  }

  void finish() {
    // Edges sorted by source vertex: each arc and its reverse.
    std::vector<std::uint32_t> end(vertices + 1);
    for (const Arc& arc : arcs) ++end[arc.from + 1], ++end[arc.to + 1];
    for (Vertex v = 0; v < vertices; ++v) end[v + 1] += end[v];
    std::vector<std::pair<Vertex, Vertex>> edges(2 * arcs.size());
    std::vector<std::uint32_t> back;
    for (const Arc& arc : arcs) {
      position.push_back(end[arc.from]++);
      back.push_back(end[arc.to]++);
      edges[position.back()] = {arc.from, arc.to};
      edges[back.back()] = {arc.to, arc.from};
    }
    graph = FlowGraph(boost::edges_are_sorted, edges.begin(), edges.end(), vertices);
    reverse.resize(edges.size());
    for (std::size_t k = 0; k < arcs.size(); ++k) {
      reverse[position[k]] = edge_from_index(back[k], graph);
      reverse[back[k]] = edge_from_index(position[k], graph);
    }
  }

  Capacity capacity_of(double seconds) const {
    const double capacity = seconds * scale;
    return capacity < static_cast<double>(infinite) ? static_cast<Capacity>(capacity) : infinite;
  }
};

RecomputeNetwork::RecomputeNetwork(const Graph& graph, const Moment& moment)
    : flow_(std::make_unique<Flow>()) {
  Flow& flow = *flow_;
  std::vector<Vertex> vertex_of_storage(graph.value_count());
  std::vector<Vertex> vertex_of_node(graph.node_count());
  std::vector<ValueId> storages;  // demanded, in the order of `flow.storages`
  std::vector<NodeId> nodes;      // that may run again, in the order of `flow.nodes`

  // The vertex of the storage of `value`; none when it is available in any case.
  const auto demand = [&](ValueId value) {
    const ValueId root = graph.storage(value);
    const NodeId producer = graph.producer(root);
    if (graph.bytes(root) == 0 || moment.there[root] || moment.after[producer]) return none;
    if (vertex_of_storage[root] == 0) {
      vertex_of_storage[root] = flow.vertices++;
      storages.push_back(root);
      keep_all_.bytes += graph.bytes(root);
      keep_all_.kept.push_back(root);
    }
    return vertex_of_storage[root];
  };
  std::vector<Vertex> reads;
  const auto demand_all = [&](std::span<const ValueId> values, Vertex reader) {
    reads.clear();
    for (const ValueId value : values) {
      const Vertex vertex = demand(value);
      if (vertex != none) reads.push_back(vertex);
    }
    std::sort(reads.begin(), reads.end());
    reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
    for (const Vertex vertex : reads) flow.add(reader, vertex, infinite);
  };

  std::vector<ValueId> demanded(graph.targets().begin(), graph.targets().end());
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    if (!moment.after[node]) continue;
    demanded.insert(demanded.end(), graph.inputs(node).begin(), graph.inputs(node).end());
  }
  demand_all(demanded, source);
  for (std::size_t k = 0; k < storages.size(); ++k) {
    const NodeId node = graph.producer(storages[k]);
    if (vertex_of_node[node] == 0) {
      vertex_of_node[node] = flow.vertices++;
      nodes.push_back(node);
      demand_all(graph.inputs(node), vertex_of_node[node]);
      keep_none_.seconds += moment.extra[node];
    }
  }
  keep_none_.value = keep_none_.seconds;
  flow.scale = keep_none_.seconds > 0 ? static_cast<double>(everything) / keep_none_.seconds : 0;
  std::sort(storages.begin(), storages.end());
  for (const ValueId root : storages) {
    const Vertex producer = vertex_of_node[graph.producer(root)];
    flow.storages.push_back({root, graph.bytes(root), van_der_corput(flow.storages.size()),
                             flow.add(vertex_of_storage[root], producer, 0)});
  }
  for (const NodeId node : nodes) {
    const Vertex vertex = vertex_of_node[node];
    const double seconds = moment.extra[node];
    flow.nodes.push_back({vertex, seconds, flow.add(vertex, sink, flow.capacity_of(seconds))});
  }
  flow.finish();
}

RecomputeNetwork::~RecomputeNetwork() = default;

std::size_t RecomputeNetwork::size() const { return flow_->vertices + flow_->arcs.size(); }

RecomputeNetwork::Choice RecomputeNetwork::cheapest(double price,
                                                    std::optional<double> share) const {
  const Flow& flow = *flow_;
  std::vector<Capacity> capacity(flow.reverse.size());
  for (std::size_t k = 0; k < flow.arcs.size(); ++k) {
    capacity[flow.position[k]] = flow.arcs[k].capacity;
  }
  for (const auto& storage : flow.storages) {
    capacity[flow.position[storage.arc]] =
        flow.capacity_of(price * static_cast<double>(storage.bytes) *
                         (share ? 1 + 1e-6 * (storage.spread - *share) : 1));
  }
  std::vector<Capacity> residual(capacity.size());
  std::vector<Edge> predecessor(flow.vertices);
  std::vector<boost::default_color_type> color(flow.vertices);
  std::vector<std::uint32_t> distance(flow.vertices);
  const Capacity value = boost::boykov_kolmogorov_max_flow(
      flow.graph, by_edge(capacity, flow.graph), by_edge(residual, flow.graph),
      by_edge(flow.reverse, flow.graph), by_vertex(predecessor, flow.graph),
      by_vertex(color, flow.graph), by_vertex(distance, flow.graph),
      get(boost::vertex_index, flow.graph), source, sink);

  Choice choice;
  choice.value = flow.scale > 0 ? static_cast<double>(value) / flow.scale : 0;
  const auto chosen = [&](Vertex vertex) { return color[vertex] == color[source]; };
  for (const auto& node : flow.nodes) {
    if (chosen(node.vertex)) choice.seconds += node.seconds;
  }
  for (const auto& storage : flow.storages) {
    const auto& arc = flow.arcs[storage.arc];
    if (!chosen(arc.from) || chosen(arc.to)) continue;
    choice.bytes += storage.bytes;
    choice.kept.push_back(storage.root);
  }
  return choice;
}

}  // namespace palimpsest
