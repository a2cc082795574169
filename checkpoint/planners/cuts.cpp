#include "checkpoint/planners/cuts.h"

#include <algorithm>

namespace palimpsest {

namespace {

/// Storages that cross from before a node to it or to later nodes.
struct Crossing {
  std::uint32_t storages = 0;
  std::uint32_t unread = 0;  // number of them that the backward part does not read
  Bytes bytes = 0;

  void add(const Crossing& other, std::uint32_t sign) {  // 1 or −1
    storages += sign * other.storages;
    unread += sign * other.unread;
    bytes += static_cast<std::int32_t>(sign) * other.bytes;
  }
};

/// The places where few enough storages cross. Empty when that leaves too long a stage.
std::vector<std::size_t> narrow_places(const std::vector<Crossing>& crossings, std::uint32_t width,
                                       bool unread_too) {
  const std::size_t end = crossings.size() - 1;
  std::vector<std::size_t> places;
  std::size_t longest = 0;
  std::size_t first = 0;
  for (std::size_t k = 1; k <= end; ++k) {
    const bool narrow = crossings[k].storages <= width && (unread_too || crossings[k].unread == 0);
    if (k < end && !narrow) continue;
    longest = std::max(longest, k - first);
    first = k;
    if (k < end) places.push_back(k);
  }
  if (longest > std::max<std::size_t>(end / 8, 1)) places.clear();
  return places;
}

/// Divides the nodes into `most` parts of equal weight, and selects the one of `places` in each
/// that fewest bytes cross.
std::vector<std::size_t> thin_out(const Graph& graph, std::span<const NodeId> nodes,
                                  const std::vector<Crossing>& crossings,
                                  const std::vector<std::size_t>& places, std::size_t most) {
  double total = 0;
  for (const NodeId node : nodes) total += graph.cost(node);
  // Weight is half cost and half number of nodes.
  const double each = total > 0 ? total / static_cast<double>(nodes.size()) : 1;
  total += each * static_cast<double>(nodes.size());
  std::vector<std::size_t> result;
  std::size_t last_part = most;
  std::size_t node = 0;
  double before = 0;
  for (const std::size_t place : places) {
    for (; node < place; ++node) before += graph.cost(nodes[node]) + each;
    const auto part = static_cast<std::size_t>(before / total * static_cast<double>(most));
    if (part != last_part) {
      result.push_back(place);
    } else if (crossings[place].bytes < crossings[result.back()].bytes) {
      result.back() = place;
    }
    last_part = part;
  }
  return result;
}

}  // namespace

Cuts find_cuts(const Graph& graph, std::span<const NodeId> nodes, std::size_t forward,
               CutSettings settings) {
  std::vector<std::size_t> last_read(graph.value_count());  // by the forward part
  std::vector<bool> read(graph.value_count());              // by the backward part
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    for (const ValueId input : graph.inputs(nodes[k])) {
      const ValueId root = graph.storage(input);
      if (k < forward) {
        last_read[root] = k;
      } else {
        read[root] = true;
      }
    }
  }
  constexpr std::size_t near = 8;
  const std::size_t far =
      settings.far_part == 0 ? forward : std::max(forward / settings.far_part, near);
  Cuts cuts{{}, std::vector<bool>(graph.value_count())};
  std::vector<Crossing> crossings(forward + 1);
  for (std::size_t k = 0; k < forward; ++k) {
    for (std::uint32_t i = 0; i < graph.output_count(nodes[k]); ++i) {
      const ValueId value = graph.first_output(nodes[k]) + i;
      const std::size_t end = last_read[value];
      if (graph.storage(value) != value || end <= k) continue;
      cuts.held[value] = end - k > far;
      if (cuts.held[value]) continue;
      const Crossing one{1, read[value] ? 0u : 1u, graph.bytes(value)};
      crossings[k + 1].add(one, 1);
      crossings[end + 1].add(one, static_cast<std::uint32_t>(-1));
    }
  }
  for (std::size_t k = 1; k <= forward; ++k) crossings[k].add(crossings[k - 1], 1);

  constexpr std::uint32_t widest = 8;
  for (const bool unread_too : {false, true}) {
    for (std::uint32_t width = 1; width <= widest && cuts.places.empty(); ++width) {
      cuts.places = narrow_places(crossings, width, unread_too);
    }
  }
  if (settings.most_stages < 2) cuts.places.clear();
  if (cuts.places.size() >= settings.most_stages) {
    const std::span<const NodeId> cut = nodes.first(forward);
    cuts.places = thin_out(graph, cut, crossings, cuts.places, settings.most_stages - 1);
  }
  return cuts;
}

}  // namespace palimpsest
