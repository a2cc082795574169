#include <algorithm>

#include "strategy/compile/fusion/access_maps.h"
#include "strategy/compile/fusion/known_of_tape.h"

namespace palimpsest {
namespace {

/// More nodes are better off as a group of their own.
constexpr std::size_t most_moved_nodes = 8;
/// Most nodes to visit when tracing a node's inputs within its group.
constexpr std::size_t most_looked_at = 16;

}  // namespace

/// Finds nodes that can be moved to the reader of their result.
class AccessMaps::Moving {
 public:
  explicit Moving(AccessMaps& access_maps)
      : tape_(access_maps.tape_),
        access_maps_(access_maps),
        readers_(count_readers(tape_, {access_maps.needed_, access_maps.pointwise_,
                                       access_maps.present_, access_maps.read_whole_})) {}

  void find() {
    // Values that others read too are moved only where that takes no more memory, so they
    // come second.
    find(true);
    find(false);
  }

 private:
  void find(bool alone) {
    for (NodeId node = 0; node < tape_.node_count(); ++node) {
      if (!access_maps_.needed_[node] || !access_maps_.pointwise_[node]) continue;
      for (const ValueId input : tape_.inputs(node)) {
        if (!is_rolled_for_one(input)) continue;
        if (!tape_.have_one_shape(input, tape_.first_output(node))) continue;
        const ValueId value = tape_.inputs(tape_.producer(input))[0];
        if ((readers_[value] == 1) != alone || access_maps_.moved_producers(input) != nullptr)
          continue;
        if (std::optional<MovedProducers> moved_producers = makers(value, node))
          move(input, std::move(*moved_producers));
      }
    }
  }

  /// An array that has not been made yet. `alone`: only moved nodes read it.
  struct Array {
    ValueId value;
    bool alone;
  };

  /// Whether `value` is a complete roll of an elementwise node's result, and only one node reads
  /// it.
  bool is_rolled_for_one(ValueId value) const {
    const NodeId node = tape_.producer(value);
    const auto stretches = tape_.operation(node).stretches;
    if (stretches == nullptr || tape_.inputs(node).size() != 1 || readers_[value] != 1)
      return false;
    if (!access_maps_.is_transparent(value) || !is_elementwise(tape_.inputs(node)[0])) return false;
    return std::ranges::none_of(stretches(NodeView(tape_.nodes(), node)), [](const Stretch& part) {
      return part.input < 0 && part.begin < part.end;
    });
  }

  bool is_elementwise(ValueId value) const {
    const NodeId node = tape_.producer(value);
    return access_maps_.needed_[node] && access_maps_.pointwise_[node] &&
           !tape_.inputs(node).empty() && !is_held(value) && !access_maps_.read_whole_[value];
  }
  bool is_held(ValueId value) const {
    return access_maps_.present_[value] || tape_.is_leaf(tape_.producer(value));
  }
  bool may_be_made(const Array& array) const {
    if (!is_elementwise(array.value)) return false;
    // An array that others also read is duplicated, so it must be cheap.
    const NodeView node(tape_.nodes(), tape_.producer(array.value));
    const auto elements = static_cast<double>(node.output().shape.elements());
    return array.alone || cost_of(node).flops <= elements;
  }

  /// The nodes that make a value from arrays that are held anyway. One further array is allowed: it
  /// replaces the value in memory, or `reader`'s group has it. Nothing if they need more arrays, or
  /// do not read them element by element.
  std::optional<MovedProducers> makers(ValueId value, NodeId reader) const {
    const bool alone = readers_[value] == 1;
    for (const std::size_t most : {0, 1}) {
      MovedProducers moved_producers;
      std::vector<Array> arrays{{value, alone}};
      if (!make_all(arrays, most, moved_producers)) continue;
      const bool there = std::ranges::all_of(arrays, [&](const Array& array) {
        if (is_held(array.value)) return true;
        if (alone) return tape_.bytes(array.value) <= tape_.bytes(value);
        return access_maps_.read_whole_[array.value] && reads(reader, array.value);
      });
      if (!there) continue;
      for (const Array& array : arrays) moved_producers.read.push_back(array.value);
      std::ranges::sort(moved_producers.nodes);
      return moved_producers;
    }
    return {};
  }

  /// Replaces arrays by the inputs of their producers, at least the first one, until at most `most`
  /// of them are not held.
  bool make_all(std::vector<Array>& arrays, std::size_t most,
                MovedProducers& moved_producers) const {
    while (true) {
      std::size_t left = 0;
      auto next = arrays.end();
      for (auto array = arrays.begin(); array != arrays.end(); ++array) {
        if (is_held(array->value)) continue;
        ++left;
        const bool later = next == arrays.end() || array->value > next->value;
        if (later) next = array;
      }
      const auto alone = std::ranges::find_if(
          arrays, [&](const Array& array) { return array.alone && is_elementwise(array.value); });
      if (alone != arrays.end()) next = alone;
      if (alone == arrays.end() && left <= most && !moved_producers.nodes.empty()) return true;
      if (moved_producers.nodes.size() == most_moved_nodes || !may_be_made(*next)) return false;
      const Array array = *next;
      arrays.erase(next);
      if (!make(array, arrays, moved_producers)) return false;
    }
  }

  /// Adds the inputs of the array's producer. Returns false if those are not read element by
  /// element.
  bool make(const Array& array, std::vector<Array>& arrays, MovedProducers& moved_producers) const {
    const NodeId node = tape_.producer(array.value);
    moved_producers.nodes.push_back(node);
    for (std::size_t i = 0; i < tape_.inputs(node).size(); ++i) {
      const AccessMap reading = access_maps_.of(node, i);
      const ValueId read = reading.value();
      if (access_maps_.is_number(read)) continue;
      if (reading.in_order && read == tape_.inputs(node)[i]) {
        if (std::ranges::find(arrays, read, &Array::value) != arrays.end()) continue;
        arrays.push_back({read, array.alone && readers_[read] == 1});
        continue;
      }
      const bool one = read != none && tape_.shape(read).elements() == 1;
      if (reading.in_order || !one || tape_.shape(array.value).elements() == 1) return false;
      moved_producers.read.push_back(read);
    }
    return true;
  }

  /// Whether the node, or a node of its group that it depends on, reads the array in order.
  bool reads(NodeId node, ValueId array) const {
    std::vector<NodeId> nodes{node};
    for (std::size_t next = 0; next < nodes.size() && next < most_looked_at; ++next) {
      for (std::size_t i = 0; i < tape_.inputs(nodes[next]).size(); ++i) {
        const AccessMap reading = access_maps_.of(nodes[next], i);
        if (!reading.in_order) continue;
        const ValueId value = reading.value();
        if (value == array) return true;
        const NodeId producer = tape_.producer(value);
        if (is_elementwise(value) && std::ranges::find(nodes, producer) == nodes.end()) {
          nodes.push_back(producer);
        }
      }
    }
    return false;
  }

  /// Marks moved nodes that no others read as not needed.
  void move(ValueId rolled, MovedProducers moved_producers) {
    const NodeId roll = tape_.producer(rolled);
    std::vector<ValueId> read{tape_.inputs(roll)[0]};
    for (auto node = moved_producers.nodes.rbegin(); node != moved_producers.nodes.rend(); ++node) {
      const ValueId value = tape_.first_output(*node);
      if (std::ranges::count(read, value) < readers_[value]) continue;
      access_maps_.needed_[*node] = false;
      const auto inputs = tape_.inputs(*node);
      read.insert(read.end(), inputs.begin(), inputs.end());
    }
    for (const ValueId value : read) --readers_[value];
    for (const ValueId value : moved_producers.read) access_maps_.read_whole_[value] = true;
    access_maps_.moved_of_[roll] = static_cast<std::uint32_t>(access_maps_.moved_.size());
    access_maps_.moved_.push_back(std::move(moved_producers));
  }

  const Tape& tape_;
  AccessMaps& access_maps_;
  std::vector<std::uint32_t> readers_;  // by value
};

void AccessMaps::find_moved() { Moving(*this).find(); }

}  // namespace palimpsest
