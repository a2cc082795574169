#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>

#include "autodiff/present_values.h"
#include "autodiff/tensor.h"
#include "autodiff/wengert_list.h"

namespace palimpsest {

enum class LeafKind : std::uint8_t { any, parameter, constant };

/// Finds the leaves of a tape by the address of their elements. Bodies of loops may look for leaves
/// on several threads.
class LeafIndex {
 public:
  /// The leaf of a kind that shares the tensor's storage and has its type, or `none`. Prefers a
  /// parameter to a constant.
  ValueId find(const WengertList& nodes, const PresentValues& values, const Tensor& tensor,
               LeafKind kind);
  /// The storages of leaves that the library has written into after `version`, and the calls that
  /// did.
  std::map<const std::byte*, const char*> written_after(std::uint64_t version,
                                                        const WengertList& nodes,
                                                        const PresentValues& values);
  /// Notes that the nodes from `node` on were removed.
  void truncate(NodeId node) { indexed_ = std::min(indexed_, node); }
  void clear() {
    leaves_.clear();
    indexed_ = 0;
  }

 private:
  void extend(const WengertList& nodes, const PresentValues& values);

  std::mutex mutex_;
  std::unordered_multimap<const std::byte*, ValueId> leaves_;  // one of each type and kind
  NodeId indexed_ = 0;                                         // nodes before it are in the index
};

}  // namespace palimpsest
