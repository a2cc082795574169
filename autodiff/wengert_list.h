#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "autodiff/export.h"
#include "autodiff/operation.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Position of a node on its tape.
using NodeId = std::uint32_t;
/// Position of a value on its tape. Values are numbered over the outputs of all nodes, in order.
using ValueId = std::uint32_t;
/// No node and no value.
inline constexpr std::uint32_t none = 0xffffffffu;

/// A Wengert list: the nodes of a program in single-assignment form, in the order in which they
/// were recorded (R. E. Wengert, 1964).
///
/// A node is an operation, the values it reads and the types of the values it makes. Nodes only
/// read earlier values, so the order is a topological one. Every algorithm here is a loop over ids;
/// none recurses. Its tape appends nodes, and removes them from the end. Only their names change,
/// and the shapes of values that have a state budget.
class WengertList {
 public:
  /// The labels of a node. Scopes are numbers of texts.
  struct Labels {
    std::uint32_t scope = 0;  ///< all scopes, joined by '/'
    std::uint32_t stage = 0;  ///< those that end stages
    bool inherits_scope = false;
    bool is_blocked = false;  ///< no derivative flows through the node

    bool operator==(const Labels&) const = default;
  };

  WengertList() { intern(""); }

  std::uint32_t node_count() const { return static_cast<std::uint32_t>(nodes_.size()); }
  std::uint32_t value_count() const { return static_cast<std::uint32_t>(values_.size()); }

  // Nodes -----------------------------------------------------------------------------------------

  const Operation& operation(NodeId node) const { return *nodes_[node].operation; }
  const Attributes& attributes(NodeId node) const { return nodes_[node].attributes; }
  const Where& where(NodeId node) const { return nodes_[node].where; }
  std::span<const ValueId> inputs(NodeId node) const {
    const std::size_t first = nodes_[node].first_input;
    const bool is_last = node + 1 == nodes_.size();
    const std::size_t last = is_last ? inputs_.size() : nodes_[node + 1].first_input;
    return {inputs_.data() + first, last - first};
  }
  ValueId first_output(NodeId node) const { return nodes_[node].first_output; }
  std::uint32_t output_count(NodeId node) const {
    const bool is_last = node + 1 == nodes_.size();
    return (is_last ? value_count() : nodes_[node + 1].first_output) - nodes_[node].first_output;
  }
  const Labels& labels(NodeId node) const { return nodes_[node].labels; }
  bool is_leaf(NodeId node) const { return operation(node).leaf; }
  bool is_parameter(NodeId node) const;
  /// The name that the user gave, its scopes and the stage of a pipeline; empty for none.
  std::string_view name(NodeId node) const { return text(nodes_[node].name); }
  std::string_view scope_of(NodeId node) const { return text(labels(node).scope); }
  std::string_view stage_of(NodeId node) const { return text(labels(node).stage); }
  /// A hash of scopes and name, equal for equal texts also in other lists.
  std::size_t name_hash(NodeId node) const {
    return 31 * text_hashes_[labels(node).scope] + text_hashes_[nodes_[node].name];
  }
  /// Text for messages: scope, name, operation and id, as in `layer3/attention matmul #17`.
  std::string describe(NodeId node) const;

  // Values ----------------------------------------------------------------------------------------

  NodeId producer(ValueId value) const { return values_[value].node; }
  DType dtype(ValueId value) const { return values_[value].dtype; }
  Shape shape(ValueId value) const { return Shape(sizes_of(values_[value])); }
  ValueType type(ValueId value) const { return {shape(value), dtype(value)}; }
  /// True when both have the same shape.
  bool have_one_shape(ValueId a, ValueId b) const;

  /// The text of a number that `Labels` have.
  const std::string& text(std::uint32_t number) const { return texts_[number]; }

  /// True only if the nodes of this list are a prefix of those of `other`. Names and source lines
  /// must match. The tape of this list was cleared `round` times more than that of `other`, so
  /// random operations draw from other streams.
  bool begins(const WengertList& other, std::uint32_t round) const;

  /// Bytes of the list, without attributes and texts.
  Bytes metadata_bytes() const;

 private:
  friend class Tape;

  /// Appends a node without inputs and outputs.
  void append(const Operation& operation, Attributes&& attributes, const Where& where,
              const Labels& labels) {
    nodes_.push_back({&operation, std::move(attributes), where,
                      static_cast<std::uint32_t>(inputs_.size()), value_count(), 0, labels});
  }
  /// Adds an input or an output to the last node.
  void append_input(ValueId value) { inputs_.push_back(value); }
  void append_output(const ValueType& type) {
    // Most values have the shape of the previous one; they share its sizes unless those may change.
    if (is_resizable(node_count() - 1) || !has_last_shape(type.shape)) {
      sizes_.insert(sizes_.end(), type.shape.begin(), type.shape.end());
    }
    const auto rank = static_cast<std::uint8_t>(type.shape.rank());
    const auto first_size = static_cast<std::uint32_t>(sizes_.size() - rank);
    values_.push_back({node_count() - 1, first_size, rank, type.dtype});
  }
  /// Removes the nodes from `node` on.
  void truncate(NodeId node);
  /// Removes all nodes. Texts stay.
  void clear();
  void set_name(NodeId node, std::string_view name) { nodes_[node].name = intern(name); }
  /// Changes a value's shape to another one of the same rank. The node's operation must have
  /// `has_state_budget`.
  void resize(ValueId value, const Shape& shape);

  /// The number of a text. 0 is the empty text.
  std::uint32_t intern(std::string_view text);

  struct Node {
    const Operation* operation;
    Attributes attributes;
    Where where;
    std::uint32_t first_input;
    ValueId first_output;
    std::uint32_t name;
    Labels labels;

    /// True when `later` does the same on a tape that was cleared `round` more times.
    bool comes_again(const Node& later, std::uint32_t round) const;
  };
  struct Value {
    NodeId node;
    std::uint32_t first_size;
    std::uint8_t rank;
    DType dtype;

    bool operator==(const Value&) const = default;
  };
  struct TextHash {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): named by the standard
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };

  bool is_resizable(NodeId node) const { return operation(node).has_state_budget; }
  /// True when the last value has this shape, and keeps it.
  bool has_last_shape(const Shape& shape) const {
    return !values_.empty() && std::ranges::equal(shape, sizes_of(values_.back())) &&
           !is_resizable(values_.back().node);
  }
  std::span<const std::int64_t> sizes_of(const Value& value) const {
    return {sizes_.data() + value.first_size, value.rank};
  }

  std::vector<Node> nodes_;
  std::vector<ValueId> inputs_;
  std::vector<Value> values_;
  std::vector<std::int64_t> sizes_;
  std::vector<std::string> texts_;
  std::vector<std::size_t> text_hashes_;
  std::unordered_map<std::string, std::uint32_t, TextHash, std::equal_to<>> text_numbers_;
};

}  // namespace palimpsest
