#include "autodiff/outdated.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "autodiff/leaf_index.h"
#include "autodiff/tape.h"

namespace palimpsest {
namespace {

/// A loss has fewer bytes. It is kept apart from the memory of its run, and no budget counts it.
constexpr Bytes most_uncounted = 64;

Buffer copy_of(const Buffer& buffer, Bytes bytes) {
  Buffer copy = allocate_buffer(bytes);
  std::memcpy(copy.get(), buffer.get(), static_cast<std::size_t>(bytes));
  return copy;
}

}  // namespace

/// Values that share the storage of a leaf stay present, since they have its new elements.
void Tape::find_outdated() {
  const std::uint64_t version = latest_version();
  const auto written = leaves_->written_after(outdated_.version, nodes_, values_);
  if (!written.empty()) {
    values_.note_change();
    std::vector<ValueId> origin(node_count(), none);  // by node: the leaf that it depends on
    for (NodeId node = 0; node < node_count(); ++node) {
      const ValueId first = first_output(node);
      if (is_leaf(node)) {
        if (written.contains(values_.buffer(first).get())) origin[node] = first;
        continue;
      }
      for (const ValueId input : inputs(node)) {
        if (origin[producer(input)] != none) origin[node] = origin[producer(input)];
      }
      if (origin[node] == none) continue;
      for (ValueId value = first; value < first + output_count(node); ++value) {
        if (!has_value(value) || written.contains(values_.buffer(value).get())) continue;
        const bool is_small = bytes(value) <= most_uncounted;
        const Buffer& old = values_.buffer(value);
        outdated_.values.insert_or_assign(
            value, OutdatedValue{is_small ? copy_of(old, bytes(value)) : old, origin[node],
                                 written.at(values_.buffer(origin[node]).get())});
        outdated_.takes_memory |= !is_small;
        values_.drop(value);
      }
    }
  }
  outdated_.version = version;
}

void Tape::force_out_outdated() {
  if (!outdated_.takes_memory) return;
  for (auto& [value, old] : outdated_.values) {
    if (bytes(value) > most_uncounted) old.buffer = nullptr;
  }
  outdated_.takes_memory = false;
}

void Tape::require_current(std::span<const ValueId> targets) const {
  if (outdated_.values.empty() || evaluator_ == nullptr || !evaluator_->keeps_recorded()) return;
  if (std::ranges::all_of(targets, [this](ValueId target) { return has_value(target); })) return;
  std::vector<bool> is_needed(value_count());
  for (const ValueId target : targets) is_needed[target] = true;
  for (NodeId node = node_count(); node-- > 0;) {
    bool runs = false;
    for (std::uint32_t i = 0; i < output_count(node); ++i) {
      const ValueId value = first_output(node) + i;
      if (!is_needed[value] || has_value(value)) continue;
      const auto old = outdated_.values.find(value);
      if (old != outdated_.values.end()) throw_outdated(value, old->second);
      runs = true;
    }
    if (!runs) continue;
    for (const ValueId input : inputs(node)) is_needed[input] = true;
  }
}

void Tape::throw_outdated(ValueId value, const OutdatedValue& old) const {
  const NodeId node = producer(value);
  throw TapeError(operation(node).name,
                  "the value of " + describe(node) + " is needed, but it was made from " +
                      describe(producer(old.leaf)) + " before " + old.call +
                      " changed that, and an eager tape does not mix old and new values; clear the "
                      "tape and record it again, or use a lazy tape, which computes such values "
                      "again",
                  where(node));
}

}  // namespace palimpsest
