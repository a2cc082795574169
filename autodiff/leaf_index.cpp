#include "autodiff/leaf_index.h"

#include <algorithm>

#include "autodiff/storage_version.h"

namespace palimpsest {

void LeafIndex::extend(const WengertList& nodes, const PresentValues& values) {
  for (; indexed_ < nodes.node_count(); ++indexed_) {
    if (!nodes.is_leaf(indexed_)) continue;
    const ValueId value = nodes.first_output(indexed_);
    const std::byte* const address = values.buffer(value).get();
    if (address == nullptr) continue;
    // Leaves of several types may share an address. The first one of each type and kind is known.
    auto [known, end] = leaves_.equal_range(address);
    const auto is_replaced = [&](const auto& entry) {
      const ValueId other = entry.second;
      return other >= nodes.value_count() || values.buffer(other).get() != address ||
             !nodes.is_leaf(nodes.producer(other));
    };
    const auto is_known = [&](const auto& entry) {
      const ValueId other = entry.second;
      return !is_replaced(entry) && nodes.type(other) == nodes.type(value) &&
             nodes.is_parameter(nodes.producer(other)) == nodes.is_parameter(indexed_);
    };
    if (std::any_of(known, end, is_known)) continue;
    known = std::find_if(known, end, is_replaced);
    if (known == end) {
      leaves_.emplace(address, value);
    } else {
      known->second = value;
    }
  }
}

ValueId LeafIndex::find(const WengertList& nodes, const PresentValues& values, const Tensor& tensor,
                        LeafKind kind) {
  const std::lock_guard lock(mutex_);
  extend(nodes, values);
  ValueId constant = none;
  auto [known, end] = leaves_.equal_range(tensor.raw());
  for (; known != end; ++known) {
    const ValueId value = known->second;
    const bool is_current =
        value < nodes.value_count() && values.buffer(value) == tensor.buffer() &&
        nodes.is_leaf(nodes.producer(value)) && nodes.type(value) == tensor.type();
    if (!is_current) continue;
    if (!nodes.is_parameter(nodes.producer(value))) {
      constant = value;
    } else if (kind != LeafKind::constant) {
      return value;
    }
  }
  return kind != LeafKind::parameter ? constant : none;
}

std::map<const std::byte*, const char*> LeafIndex::written_after(std::uint64_t version,
                                                                 const WengertList& nodes,
                                                                 const PresentValues& values) {
  const std::lock_guard lock(mutex_);
  extend(nodes, values);
  std::map<const std::byte*, const char*> written;
  for (const auto& [address, value] : leaves_) {
    if (value >= nodes.value_count() || values.buffer(value).get() != address) continue;
    const StorageVersion current = version_of(values.buffer(value));
    if (current.number > version) written.emplace(address, current.call);
  }
  return written;
}

}  // namespace palimpsest
