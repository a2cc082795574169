#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "autodiff/export.h"
#include "autodiff/tensor.h"
#include "autodiff/wengert_list.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// The values of a tape that are present.
class PresentValues {
 public:
  /// True when the value is present.
  bool has(ValueId value) const { return buffers_[value] != nullptr; }
  /// The value's storage; null when it is not present.
  const Buffer& buffer(ValueId value) const { return buffers_[value]; }
  /// Counts changes to the set of present values, except leaves.
  std::uint64_t changes() const { return changes_; }

  /// Bytes of the list, without the values.
  Bytes metadata_bytes() const { return static_cast<Bytes>(buffers_.size() * sizeof(Buffer)); }

 private:
  friend class Tape;

  /// Makes a value present, or removes it.
  void set(ValueId value, Buffer buffer) {
    buffers_[value] = std::move(buffer);
    ++changes_;
  }
  void drop(ValueId value) { set(value, nullptr); }
  /// Counts a change of elements.
  void note_change() { ++changes_; }
  /// Sets the value of a leaf.
  void set_leaf(ValueId value, Buffer buffer) { buffers_[value] = std::move(buffer); }
  /// Appends a value that is not present.
  void append() { buffers_.emplace_back(); }
  /// Removes the values from `count` on, or adds values that are not present.
  void resize(std::uint32_t count) { buffers_.resize(count); }
  /// Removes all values.
  void clear() {
    buffers_.clear();
    ++changes_;
  }

  std::vector<Buffer> buffers_;
  std::uint64_t changes_ = 0;
};

}  // namespace palimpsest
