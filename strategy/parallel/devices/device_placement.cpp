#include "strategy/parallel/devices/device_placement.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include "checkpoint/tape_graph.h"
#include "strategy/base/named_errors.h"
#include "strategy/parallel/pipeline/division.h"

namespace palimpsest {
namespace {

constexpr int nowhere = -1;

/// The end of the last occurrence of `scope` in a path, as whole components. 0 if there is none.
std::size_t end_of(std::string_view scope, std::string_view path) {
  for (std::size_t at = path.rfind(scope); at != path.npos; at = path.rfind(scope, at - 1)) {
    const std::size_t end = at + scope.size();
    const bool begins = at == 0 || path[at - 1] == '/';
    if (begins && (end == path.size() || path[end] == '/')) return end;
    if (at == 0) break;
  }
  return 0;
}

[[noreturn]] void refuse_scope(const RecordedProgram& program, std::size_t device,
                               const std::string& scope) {
  naming_errors("[devices] device " + std::to_string(device),
                [&] { segments_in_scope(program.tape, scope); });
  throw ArgumentError("[devices] device " + std::to_string(device) +
                      ": no needed operation was recorded under '" + scope + "'; leave it out");
}

/// By element: the device that a scope assigns, or `nowhere`.
DevicePlacement placed_by_scopes(const RecordedProgram& program, const Elements& elements,
                                 std::span<const Device> devices) {
  struct Claim {
    std::size_t end = 0;  // end in the path, and size of the scope
    std::size_t size = 0;
    auto operator<=>(const Claim&) const = default;
  };
  DevicePlacement placement(elements.size(), nowhere);
  std::vector<Claim> claims(elements.size());
  for (std::size_t d = 0; d < devices.size(); ++d) {
    for (const std::string& scope : devices[d].scopes) {
      bool is_found = false;
      for (std::size_t e = 0; e < elements.size(); ++e) {
        const NodeId node = elements.node(e);
        const Claim claim{end_of(scope, program.tape.scope_of(node)), scope.size()};
        if (claim.end == 0) continue;
        is_found = true;
        const int device = static_cast<int>(d);
        if (claim < claims[e]) continue;
        if (claim == claims[e] && placement[e] != device) {
          throw ArgumentError("devices",
                              program.tape.describe(node) + " is recorded in scopes of devices " +
                                  std::to_string(placement[e]) + " and " + std::to_string(device) +
                                  "; name only one of them, or a nested scope",
                              program.tape.where(node));
        }
        placement[e] = device;
        claims[e] = claim;
      }
      if (!is_found && !program.gradients.empty()) refuse_scope(program, d, scope);
    }
  }
  return placement;
}

/// Places each element where it finishes earliest.
class EarliestFinish {
 public:
  EarliestFinish(const RecordedProgram& program, const Elements& elements)
      : elements_(elements), seconds_(elements.seconds()), inputs_(elements.size()) {
    const Graph& graph = elements.graph();
    const Tape& tape = program.tape;
    std::map<std::pair<std::size_t, ValueId>, Bytes> read;  // by element: bytes of storages that
                                                            // other elements make and it reads
    for (const NodeId node : elements.needed()) {
      if (node >= program.backward_begins || is_free(tape, node)) continue;
      for (const ValueId input : tape.inputs(node)) {
        const ValueId storage = graph.storage(input);
        const NodeId producer = graph.producer(storage);
        if (is_free(tape, producer) || elements.of(producer) == elements.of(node)) continue;
        read[{elements.of(node), storage}] = graph.bytes(storage);
      }
    }
    for (const auto& [what, bytes] : read) {
      // The input is transferred, and its adjoint is transferred back.
      const double seconds = 2 * seconds_of_transfer(bytes);
      inputs_[what.first].push_back({elements.of(graph.producer(what.second)), bytes, seconds});
    }
  }

  DevicePlacement place(const DevicePlacement& fixed, std::size_t devices) const {
    DevicePlacement placement(elements_.size(), nowhere);
    std::vector<double> ends(elements_.size());
    std::vector<double> free_from(devices);
    for (const std::size_t e : in_order_of_rank()) {
      int best = nowhere;
      double earliest = 0;
      for (const int device : candidates(e, fixed, placement, devices)) {
        double start = free_from[static_cast<std::size_t>(device)];
        for (const Input& input : inputs_[e]) {
          const bool stays = placement[input.element] == device;
          start = std::max(start, ends[input.element] + (stays ? 0 : input.seconds));
        }
        if (best != nowhere && start + seconds_[e] >= earliest) continue;
        best = device;
        earliest = start + seconds_[e];
      }
      placement[e] = best;
      ends[e] = earliest;
      free_from[static_cast<std::size_t>(best)] = earliest;
    }
    return placement;
  }

 private:
  struct Input {
    std::size_t element;
    Bytes bytes;
    double seconds;  ///< to transfer it from another device
  };

  /// The elements by decreasing upward rank: the longest path of elements and transfers from the
  /// begin of the element to the end.
  std::vector<std::size_t> in_order_of_rank() const {
    std::vector<double> rank = seconds_;
    std::vector<double> behind(rank.size());
    for (std::size_t e = rank.size(); e-- > 0;) {
      rank[e] += behind[e];
      for (const Input& input : inputs_[e]) {
        behind[input.element] = std::max(behind[input.element], input.seconds + rank[e]);
      }
    }
    std::vector<std::size_t> order(rank.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order,
                             [&](std::size_t a, std::size_t b) { return rank[a] > rank[b]; });
    return order;
  }

  /// The devices that an element may be on. The first is the one that has most bytes of its inputs.
  std::vector<int> candidates(std::size_t element, const DevicePlacement& fixed,
                              const DevicePlacement& placement, std::size_t devices) const {
    if (fixed[element] != nowhere) return {fixed[element]};
    std::vector<Bytes> bytes(devices);
    for (const Input& input : inputs_[element]) {
      bytes[static_cast<std::size_t>(placement[input.element])] += input.bytes;
    }
    std::vector<int> list(devices);
    std::iota(list.begin(), list.end(), 0);
    std::swap(list[0],
              list[static_cast<std::size_t>(std::ranges::max_element(bytes) - bytes.begin())]);
    return list;
  }

  const Elements& elements_;
  std::vector<double> seconds_;
  std::vector<std::vector<Input>> inputs_;
};

/// Places each element without a scope with the one before it. Elements before the first placed one
/// go to its device.
DevicePlacement with_neighbours(DevicePlacement placement) {
  const auto first = std::ranges::find_if(placement, [](int device) { return device != nowhere; });
  int device = *first;
  for (int& each : placement) device = each = each == nowhere ? device : each;
  return placement;
}

DevicePlacement in_ranges(const Elements& elements, std::size_t devices) {
  const std::size_t parts = std::min(devices, elements.size());
  const Division division = divide(elements.seconds(), elements.crossing(), parts);
  DevicePlacement placement(elements.size());
  for (std::size_t e = 0; e < elements.size(); ++e) {
    const auto behind = std::ranges::upper_bound(division.begins, e);
    placement[e] = static_cast<int>(behind - division.begins.begin()) - 1;
  }
  return placement;
}

DevicePlacement by_budgets(const RecordedProgram& program, const Elements& elements,
                           std::span<const Device> devices) {
  const Graph& graph = elements.graph();
  std::vector<double> made(elements.size());  // bytes made up to and including each element
  for (const NodeId node : elements.needed()) {
    if (node >= program.backward_begins || is_free(program.tape, node)) continue;
    const ValueId first = graph.first_output(node);
    for (ValueId v = first; v < first + graph.output_count(node); ++v) {
      made[elements.of(node)] += static_cast<double>(graph.bytes(v));
    }
  }
  std::partial_sum(made.begin(), made.end(), made.begin());
  const bool any_without = std::ranges::any_of(
      devices, [](const Device& device) { return device.memory_budget == unlimited; });
  std::vector<double> shares;  // cumulative, by device
  for (const Device& device : devices) {
    const bool has_none = device.memory_budget == unlimited;
    const double share =
        any_without ? (has_none ? 1 : 0) : static_cast<double>(device.memory_budget);
    shares.push_back(share + (shares.empty() ? 0 : shares.back()));
  }
  DevicePlacement placement;
  std::size_t device = 0;
  for (const double sum : made) {
    while (device + 1 < shares.size() && sum * shares.back() > shares[device] * made.back()) {
      ++device;
    }
    placement.push_back(static_cast<int>(device));
  }
  return placement;
}

}  // namespace

double seconds_of_transfer(Bytes bytes) {
  constexpr double seconds_of_handing_over = 10e-6;
  const double moved = 2 * static_cast<double>(bytes);
  return seconds_of_handing_over + moved / bytes_per_second(moved, Machine{});
}

std::vector<DevicePlacement> possible_placements(const RecordedProgram& program,
                                                 const Elements& elements,
                                                 std::span<const Device> devices, bool has_budget) {
  const DevicePlacement fixed = placed_by_scopes(program, elements, devices);
  std::vector<DevicePlacement> list;
  if (elements.size() == 0) {
    for (std::size_t d = 0; d < devices.size(); ++d) list.push_back({static_cast<int>(d)});
    return list;
  }
  const bool any_fixed = std::ranges::any_of(fixed, [](int device) { return device != nowhere; });
  const auto add = [&](DevicePlacement placement) {
    if (std::ranges::find(list, placement) == list.end()) list.push_back(std::move(placement));
  };
  add(any_fixed ? with_neighbours(fixed) : in_ranges(elements, devices.size()));
  add(EarliestFinish(program, elements).place(fixed, devices.size()));
  const auto is_limited = [](const Device& device) { return device.memory_budget != unlimited; };
  if (!any_fixed && (has_budget || std::ranges::any_of(devices, is_limited))) {
    add(by_budgets(program, elements, devices));
  }
  return list;
}

}  // namespace palimpsest
