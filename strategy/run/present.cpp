#include "strategy/run/present.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "checkpoint/plan.h"
#include "strategy/run/tape_reading.h"

namespace palimpsest {

void append_present(const Tape& tape, std::vector<ValueId>& values) {
  for (ValueId value = 0; value < tape.value_count(); ++value) {
    const Operation& operation = tape.operation(tape.producer(value));
    if (!tape.has_value(value) || operation.leaf) continue;
    const bool holds_states = operation.has_state_budget && tape.bytes(value) == 0;
    if (!holds_states) values.push_back(value);
  }
}

bool are_among(std::span<const ValueId> some, std::span<const ValueId> values) {
  return std::ranges::all_of(
      some, [&](ValueId each) { return std::ranges::find(values, each) != values.end(); });
}

namespace {

/// Calls `f` with the values of each present storage that belongs to no leaf.
template <class F>
void for_each_storage(const Tape& tape, F f) {
  std::vector<ValueId> present;
  append_present(tape, present);
  const auto address = [&](ValueId value) { return tape.buffer(value).get(); };
  std::stable_sort(present.begin(), present.end(),
                   [&](ValueId a, ValueId b) { return address(a) < address(b); });
  std::vector<const std::byte*> leaves;
  for (ValueId value = 0; value < tape.value_count() && !present.empty(); ++value) {
    if (tape.has_value(value) && tape.is_leaf(tape.producer(value)))
      leaves.push_back(address(value));
  }
  std::sort(leaves.begin(), leaves.end());
  for (auto first = present.begin(); first != present.end();) {
    const auto last = std::find_if(
        first, present.end(), [&](ValueId value) { return address(value) != address(*first); });
    if (!std::binary_search(leaves.begin(), leaves.end(), address(*first))) {
      f(std::span<const ValueId>(first, last));
    }
    first = last;
  }
}

/// True if these values' storage is also held outside the tape.
bool held_elsewhere(const Tape& tape, std::span<const ValueId> values) {
  return tape.buffer(values.front()).use_count() > static_cast<long>(values.size());
}

}  // namespace

Bytes bytes_present(const Tape& tape) {
  Bytes bytes = 0;
  for_each_storage(tape, [&](std::span<const ValueId> values) {
    Bytes largest = 0;
    for (const ValueId value : values) largest = std::max(largest, tape.bytes(value));
    bytes += largest;
  });
  return bytes;
}

std::vector<NodeId> nodes_held_elsewhere(const Tape& tape) {
  std::vector<bool> held(tape.value_count());
  for_each_storage(tape, [&](std::span<const ValueId> values) {
    if (!held_elsewhere(tape, values)) return;
    for (const ValueId value : values) held[value] = true;
  });
  std::vector<NodeId> nodes;
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    const auto first = held.begin() + tape.first_output(node);
    const auto count = static_cast<std::ptrdiff_t>(tape.output_count(node));
    if (count > 0 && std::all_of(first, first + count, [](bool each) { return each; })) {
      nodes.push_back(node);
    }
  }
  return nodes;
}

bool let_go_of_present(Tape& tape) {
  std::vector<ValueId> present;
  append_present(tape, present);
  for (const ValueId value : present) tape.drop(value);
  return !present.empty();
}

void settle_present(Tape& tape, std::span<const NodeId> held, const Meter& meter, Bytes budget) {
  for (auto& [value, old] : tape.outdated()) {
    const Bytes bytes = tape.bytes(value);
    if (old.buffer == nullptr || meter.allocated(old.buffer) || bytes == 0) continue;
    Buffer copy = meter.allocate(bytes);
    std::copy_n(old.buffer.get(), bytes, copy.get());
    old.buffer = std::move(copy);
  }
  std::vector<ValueId> values;
  for_each_storage(tape, [&](std::span<const ValueId> present) {
    // Outputs of a node that is not held may share the storage of a held value, which stays.
    values.clear();
    std::ranges::copy_if(present, std::back_inserter(values), [&](ValueId value) {
      return !std::binary_search(held.begin(), held.end(), tape.producer(value));
    });
    if (values.empty()) return;
    const ValueId first = values.front();
    const Bytes bytes = tape.type(first).bytes();
    if (bytes == 0) return;  // empty values may share an address and free nothing
    const bool elsewhere = values.size() < present.size() || held_elsewhere(tape, present);
    const Buffer buffer = tape.buffer(first);
    const ValueId base = behind_views(tape, first);
    const bool one = std::all_of(values.begin(), values.end(),
                                 [&](ValueId value) { return behind_views(tape, value) == base; });
    if (one && meter.allocated(buffer) && !elsewhere) return;
    // By the value behind views, so merged values get separate storage.
    std::map<ValueId, Buffer> own;
    if (meter.allocated(buffer) && !elsewhere) own[base] = buffer;
    for (const ValueId value : values) {
      const ValueId behind = behind_views(tape, value);
      const bool is_merged = budget != unlimited && !own.empty() && !own.contains(behind);
      const bool fits = own.contains(behind) || meter.reserved() + bytes <= budget;
      if (is_merged || !fits) {
        tape.drop(value);
        continue;
      }
      Buffer& copy = own[behind];
      if (copy == nullptr) {
        copy = meter.allocate(bytes);
        std::copy_n(buffer.get(), bytes, copy.get());
      }
      tape.set_buffer(value, copy);
    }
  });
}

}  // namespace palimpsest
