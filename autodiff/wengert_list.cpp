#include "autodiff/wengert_list.h"

#include <algorithm>

#include "autodiff/error.h"
#include "autodiff/operations/leaf.h"

namespace palimpsest {

bool WengertList::is_parameter(NodeId node) const {
  return nodes_[node].operation == &parameter_operation;
}

std::string WengertList::describe(NodeId node) const {
  std::string text(scope_of(node));
  if (!text.empty()) text += '/';
  if (!name(node).empty()) text.append(name(node)).append(" ");
  return text.append(operation(node).name).append(" #").append(std::to_string(node));
}

bool WengertList::have_one_shape(ValueId a, ValueId b) const {
  const std::span<const std::int64_t> sizes = sizes_of(values_[a]);
  const std::span<const std::int64_t> others = sizes_of(values_[b]);
  return (sizes.data() == others.data() && sizes.size() == others.size()) ||
         std::ranges::equal(sizes, others);
}

void WengertList::truncate(NodeId node) {
  inputs_.resize(nodes_[node].first_input);
  values_.resize(nodes_[node].first_output);
  sizes_.resize(values_.empty() ? 0 : values_.back().first_size + values_.back().rank);
  nodes_.erase(nodes_.begin() + node, nodes_.end());
}

void WengertList::clear() {
  nodes_.clear();
  inputs_.clear();
  values_.clear();
  sizes_.clear();
}

void WengertList::resize(ValueId value, const Shape& shape) {
  internal_check(operation(producer(value)).has_state_budget && values_[value].rank == shape.rank(),
                 "a value without a state budget is resized");
  std::ranges::copy(shape, sizes_.begin() + values_[value].first_size);
}

std::uint32_t WengertList::intern(std::string_view text) {
  if (const auto known = text_numbers_.find(text); known != text_numbers_.end()) {
    return known->second;
  }
  const auto number = static_cast<std::uint32_t>(texts_.size());
  const auto added = text_numbers_.emplace(text, number).first;
  try {
    text_hashes_.push_back(TextHash()(text));
    texts_.emplace_back(text);
  } catch (...) {  // out of memory
    text_hashes_.resize(number);
    text_numbers_.erase(added);
    throw;
  }
  return number;
}

bool WengertList::Node::comes_again(const Node& later, std::uint32_t round) const {
  return operation == later.operation && first_input == later.first_input &&
         first_output == later.first_output && name == later.name && labels == later.labels &&
         same_line(where, later.where) && attributes.are_in_round(round, later.attributes);
}

bool WengertList::begins(const WengertList& other, std::uint32_t round) const {
  const auto begin = [](const auto& part, const auto& whole) {
    return part.size() <= whole.size() && std::equal(part.begin(), part.end(), whole.begin());
  };
  if (node_count() > other.node_count() || !begin(inputs_, other.inputs_) ||
      !begin(sizes_, other.sizes_) || !begin(values_, other.values_)) {
    return false;
  }
  for (NodeId node = 0; node < node_count(); ++node) {
    if (!other.nodes_[node].comes_again(nodes_[node], round)) return false;
  }
  if (!nodes_.empty()) {  // the next node determines where its inputs and outputs end
    const NodeId last = node_count() - 1;
    if (inputs(last).size() != other.inputs(last).size()) return false;
    if (output_count(last) != other.output_count(last)) return false;
  }
  return begin(texts_, other.texts_) || begin(other.texts_, texts_);
}

Bytes WengertList::metadata_bytes() const {
  const std::size_t bytes = nodes_.size() * sizeof(Node) + inputs_.size() * sizeof(ValueId) +
                            values_.size() * sizeof(Value) + sizes_.size() * sizeof(std::int64_t);
  return static_cast<Bytes>(bytes);
}

}  // namespace palimpsest
