#include "strategy/compile/fusion/simplification.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <unordered_map>

#include "autodiff/operations/leaf.h"
#include "autodiff/var.h"
#include "strategy/compile/fusion/folded_constants.h"

namespace palimpsest {

class Simplification::Finder {
 public:
  Finder(Simplification& made, const Tape& tape, const Needs& needs, NodeId boundary,
         const Simplification* before)
      : made_(made),
        tape_(tape),
        needs_(needs),
        boundary_(boundary),
        before_(before),
        replacement_(made.replacement_),
        class_(made.class_),
        numbers_(made.numbers_),
        identity_of_(tape.node_count(), none) {
    replacement_.resize(tape.value_count());
    std::iota(replacement_.begin(), replacement_.end(), 0);
    class_ = replacement_;
    numbers_.resize(tape.node_count());
  }

  void find() {
    find_read_in_backward();
    for (NodeId node = 0; node < tape_.node_count(); ++node) {
      if (needs_.needed[node] && !needs_.sources[node]) look_at(node);
    }
    note_conditions();
  }

 private:
  void find_read_in_backward() {
    read_in_backward_ = needs_.wanted;
    for (NodeId node = boundary_; node < tape_.node_count(); ++node) {
      if (!needs_.needed[node] || needs_.sources[node]) continue;
      for (const ValueId input : tape_.inputs(node)) read_in_backward_[behind_views(input)] = true;
    }
  }

  /// The value whose storage this one will share.
  ValueId behind_views(ValueId value) const {
    NodeId node = tape_.producer(value);
    while (tape_.operation(node).view && !needs_.sources[node]) {
      value = replacement_[tape_.inputs(node)[0]];
      node = tape_.producer(value);
    }
    return value;
  }

  void look_at(NodeId node) {
    const bool present = any_output(node, [&](ValueId output) { return needs_.present[output]; });
    find_number(node);
    if (present) {
      if (!is_folded(node)) find_first(node);  // later nodes may be merged with it
      return;
    }
    if (is_folded(node)) {
      made_.folded_constants_.emplace_back(node, full_attributes(*numbers_[node]));
    } else if (const ValueId input = same_as_input(node); input != none) {
      const ValueId output = tape_.first_output(node);
      class_[output] = class_[input];
      replacement_[output] = replacement_[input];
      identity_of_[node] = tape_.producer(input);
      ++made_.common_subexpressions_;
      return;
    }
    const NodeId first = find_first(node);
    if (first == none) return;
    // A constant is filled in where it is read, so it costs nothing and is not held.
    const bool computed = !is_number(node) && !is_number(first);
    for (ValueId i = 0; i < tape_.output_count(node); ++i) {
      const ValueId output = tape_.first_output(node) + i;
      class_[output] = class_[tape_.first_output(first) + i];
      if (computed) replacement_[output] = tape_.first_output(first) + i;
    }
    if (!computed) return;
    ++made_.common_subexpressions_;
    made_.holds_longer_ = made_.holds_longer_ || !tape_.operation(node).view;
  }

  template <class F>
  bool any_output(NodeId node, F f) const {
    const ValueId first = tape_.first_output(node);
    for (ValueId output = first; output < first + tape_.output_count(node); ++output) {
      if (f(output)) return true;
    }
    return false;
  }

  bool is_full(NodeId node) const { return &tape_.operation(node) == &full_operation; }
  /// True for a node that is folded to a constant. Views are not folded, since
  /// they cost nothing.
  bool is_folded(NodeId node) const {
    return numbers_[node] && !is_full(node) && !tape_.operation(node).view;
  }
  bool is_number(NodeId node) const { return is_full(node) || is_folded(node); }

  std::optional<double> number(ValueId value) const { return numbers_[tape_.producer(value)]; }

  void find_number(NodeId node) {
    if (before_ != nullptr && !before_->numbers_[node]) return;
    if (tape_.inputs(node).empty() && !is_full(node)) return;
    std::vector<double> numbers;
    for (const ValueId input : tape_.inputs(node)) {
      if (!number(input)) return;
      numbers.push_back(*number(input));
    }
    const std::optional<double> found = folded_constant_of(NodeView(tape_.nodes(), node), numbers);
    if (!found || (before_ != nullptr && !same_number(*found, *before_->numbers_[node]))) return;
    numbers_[node] = found;
  }

  /// The input that equals the node's output, or `none`. A source is excluded: its storage must not
  /// be returned as a computed value.
  ValueId same_as_input(NodeId node) const {
    const Operation& operation = tape_.operation(node);
    const auto inputs = tape_.inputs(node);
    ValueId same = none;
    if (operation.is_identity != nullptr) {
      if (operation.is_identity(NodeView(tape_.nodes(), node))) same = inputs[0];
    } else {
      for (std::size_t i = 0; i < 2 && same == none && inputs.size() == 2; ++i) {
        const auto& [neutral, given] = std::pair(operation.neutral[i], number(inputs[i]));
        if (neutral && given && same_number(*neutral, *given)) same = inputs[1 - i];
      }
    }
    if (same == none) return none;
    const ValueId output = tape_.first_output(node);
    if (tape_.type(same) != tape_.type(output) || !was_same(same, output)) return none;
    return needs_.sources[tape_.producer(behind_views(replacement_[same]))] ? none : same;
  }

  bool was_same(ValueId a, ValueId b) const {
    return before_ == nullptr || before_->class_[a] == before_->class_[b];
  }

  /// The first node that computes the same as this one and may replace it. If there is none, this
  /// node is remembered for later ones.
  NodeId find_first(NodeId node) {
    const Operation& operation = tape_.operation(node);
    const bool drawn = operation.random || (tape_.inputs(node).empty() && !is_full(node));
    if (drawn || &operation == &identity_operation) return none;
    std::vector<NodeId>& alike = nodes_[hash(node)];
    for (const NodeId first : alike) {
      if (do_the_same(first, node) && is_held_for(first, node)) return first;
    }
    alike.push_back(node);
    return none;
  }

  std::uint64_t hash(NodeId node) const {
    std::uint64_t hash = std::bit_cast<std::uintptr_t>(&tape_.operation(node));
    const auto mix = [&](std::uint64_t word) {
      hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 32;
    };
    for (const ValueId input : tape_.inputs(node)) mix(class_[input]);
    for (const std::int64_t size : tape_.shape(tape_.first_output(node))) {
      mix(static_cast<std::uint64_t>(size));
    }
    // Constants, and slices of one value, often differ only in their attributes.
    if (numbers_[node]) mix(std::bit_cast<std::uint64_t>(*numbers_[node]));
    if (const auto access = tape_.operation(node).access) {
      mix(static_cast<std::uint64_t>(access(NodeView(tape_.nodes(), node)).offset));
    }
    return hash;
  }

  bool do_the_same(NodeId a, NodeId b) const {
    const std::uint32_t outputs = tape_.output_count(a);
    if (&tape_.operation(a) != &tape_.operation(b) || outputs != tape_.output_count(b) ||
        !std::ranges::equal(tape_.inputs(a), tape_.inputs(b),
                            [&](ValueId x, ValueId y) { return class_[x] == class_[y]; })) {
      return false;
    }
    for (ValueId i = 0; i < outputs; ++i) {
      const ValueId x = tape_.first_output(a) + i;
      const ValueId y = tape_.first_output(b) + i;
      if (tape_.type(x) != tape_.type(y) || !was_same(x, y)) return false;
    }
    return tape_.attributes(a) == tape_.attributes(b);
  }

  /// Whether the values of `first` are held anyway until `node` would run.
  bool is_held_for(NodeId first, NodeId node) const {
    if (first >= boundary_ || node < boundary_) return true;
    if (is_number(first) || tape_.operation(first).view) return true;
    for (ValueId i = 0; i < tape_.output_count(node); ++i) {
      const bool read = needs_.read[tape_.first_output(node) + i];
      if (read && !read_in_backward_[tape_.first_output(first) + i]) return false;
    }
    return true;
  }

  /// Notes which attributes must be equal to each other, or to given ones, for the simplifications
  /// to hold. This includes the nodes that they follow from.
  void note_conditions() {
    std::vector<bool> equal(tape_.node_count());
    std::vector<bool> constant(tape_.node_count());
    const auto mark = [&](std::vector<bool>& nodes, NodeId node) {
      for (const ValueId input : tape_.inputs(node)) nodes[tape_.producer(input)] = true;
    };
    for (const auto& [node, attributes] : made_.folded_constants_) constant[node] = true;
    for (NodeId node = tape_.node_count(); node-- > 0;) {
      const ValueId output = tape_.first_output(node);
      if (identity_of_[node] != none) {
        constant[node] = true;
        equal[identity_of_[node]] = equal[identity_of_[node]] || equal[node];
      } else if (tape_.output_count(node) > 0 && (equal[node] || replacement_[output] != output)) {
        note_equal(node, equal, mark);
      }
      if (!constant[node]) continue;
      if (!tape_.attributes(node).empty()) {
        made_.constant_.emplace_back(node, tape_.attributes(node));
      }
      for (const ValueId input : tape_.inputs(node)) {
        if (number(input)) constant[tape_.producer(input)] = true;
      }
    }
  }

  template <class Mark>
  void note_equal(NodeId node, std::vector<bool>& equal, Mark mark) {
    const NodeId first = tape_.producer(class_[tape_.first_output(node)]);
    if (first == node) return;
    if (!tape_.attributes(node).empty()) made_.equal_.emplace_back(first, node);
    mark(equal, first);
    mark(equal, node);
  }

  Simplification& made_;
  const Tape& tape_;
  const Needs& needs_;
  NodeId boundary_;
  const Simplification* before_;
  std::vector<ValueId>& replacement_;
  std::vector<ValueId>& class_;
  std::vector<std::optional<double>>& numbers_;
  std::vector<NodeId> identity_of_;     // by node: the producer of the input that replaces it
  std::vector<bool> read_in_backward_;  // by value, looking through views
  std::unordered_map<std::uint64_t, std::vector<NodeId>> nodes_;
};

Simplification::Simplification(const Tape& tape, const Needs& needs, NodeId backward_begins,
                               const Simplification* before) {
  Finder(*this, tape, needs, backward_begins, before).find();
}

Bytes Simplification::bytes() const {
  constexpr std::size_t bytes_of_attributes = 64;
  const std::size_t bytes =
      (replacement_.size() + class_.size()) * sizeof(ValueId) +
      numbers_.size() * sizeof(std::optional<double>) +
      (folded_constants_.size() + constant_.size()) * (sizeof(constant_[0]) + bytes_of_attributes) +
      equal_.size() * sizeof(equal_[0]);
  return static_cast<Bytes>(bytes);
}

bool Simplification::holds(const Tape& tape) const {
  return std::all_of(equal_.begin(), equal_.end(),
                     [&](const auto& pair) {
                       return tape.attributes(pair.first) == tape.attributes(pair.second);
                     }) &&
         std::all_of(constant_.begin(), constant_.end(),
                     [&](const auto& pair) { return tape.attributes(pair.first) == pair.second; });
}

std::unique_ptr<Tape> simplified(const Tape& tape, const Simplification& simplification) {
  if (simplification.empty()) return nullptr;
  auto made = std::make_unique<Tape>();
  auto folded_constant = simplification.folded_constants().begin();
  std::vector<Var> inputs;
  std::vector<ValueType> types;
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    const ValueId first = tape.first_output(node);
    const ValueId end = first + tape.output_count(node);
    types.clear();
    for (ValueId output = first; output < end; ++output) types.push_back(tape.type(output));
    if (folded_constant != simplification.folded_constants().end() &&
        folded_constant->first == node) {
      made->record(full_operation, {}, types, (folded_constant++)->second, tape.where(node));
    } else {
      inputs.clear();
      for (const ValueId input : tape.inputs(node)) {
        inputs.push_back(made->var(simplification.replacement(input)));
      }
      made->record(tape.operation(node), inputs, types, tape.attributes(node), tape.where(node));
    }
    for (ValueId output = first; output < end; ++output) {
      if (tape.has_value(output)) made->set_buffer(output, tape.buffer(output));
    }
    if (!tape.name(node).empty()) made->set_name(node, tape.name(node));
  }
  return made;
}

}  // namespace palimpsest
