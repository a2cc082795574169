#include "strategy/evaluators/result_cache.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "strategy/run/tape_reading.h"

namespace palimpsest {
namespace {

/// True if a node is the same on both tapes, with the same inputs and outputs by position.
bool are_alike(const Tape& a, const Tape& b, NodeId node) {
  if (&a.operation(node) != &b.operation(node) || a.first_output(node) != b.first_output(node) ||
      a.output_count(node) != b.output_count(node) ||
      !std::ranges::equal(a.inputs(node), b.inputs(node))) {
    return false;
  }
  for (std::uint32_t i = 0; i < a.output_count(node); ++i) {
    if (a.type(a.first_output(node) + i) != b.type(b.first_output(node) + i)) return false;
  }
  return a.attributes(node) == b.attributes(node);
}

Buffer copy_of(const Buffer& buffer, Bytes bytes, const Meter& meter) {
  Buffer copy = meter.allocate(bytes);
  std::memcpy(copy.get(), buffer.get(), static_cast<std::size_t>(bytes));
  return copy;
}

}  // namespace

void ResultCache::begin(Tape& tape, std::vector<ValueId>& targets) {
  const std::vector<ValueId> asked = targets;
  asked_.assign(tape.value_count(), false);
  is_result_.assign(tape.value_count(), false);
  for (const ValueId target : targets) {
    asked_[target] = is_result_[behind_views(tape, target)] = true;
  }
  lent_.clear();
  put_.clear();
  to_keep_.clear();
  const std::vector<bool> needed = needed_nodes(tape, targets);
  const std::vector<bool> unchanged = find_unchanged(tape, needed);
  std::map<ValueId, Buffer> kept;
  for (const NodeId node : find_ends(tape, targets, needed, unchanged)) {
    for (std::uint32_t i = 0; i < tape.output_count(node); ++i) {
      const ValueId value = tape.first_output(node) + i;
      const auto found = kept_.find(value);
      if (found == kept_.end()) {
        to_keep_.emplace(value, tape.bytes(value));
        if (!asked_[value]) targets.push_back(value);
      } else {
        kept.insert(kept_.extract(found));
      }
    }
  }
  kept_ = std::move(kept);
  for (const auto& [value, buffer] : kept_) {
    if (tape.has_value(value)) continue;
    tape.set_buffer(value, buffer);
    put_.push_back(value);
  }
  for (const ValueId target : asked) {
    const ValueId base = behind_views(tape, target);
    if (std::ranges::find(put_, base) != put_.end()) lent_[base].push_back(target);
  }
}

void ResultCache::end(Tape& tape) {
  // Storage that others hold too may be modified: the tensors of results, which equal values share.
  const auto make_own = [&](Buffer& buffer, ValueId value) {
    if (buffer.use_count() > 1) buffer = copy_of(buffer, tape.bytes(value), meter_);
  };
  for (const ValueId value : put_) {
    if (!asked_[value]) tape.drop(value);
  }
  for (const auto& [value, bytes] : to_keep_) {
    Buffer made = tape.buffer(value);
    if (!asked_[value]) tape.drop(value);
    make_own(made, value);
    kept_.emplace(value, std::move(made));
  }
  to_keep_.clear();
  for (const auto& [base, targets] : lent_) make_own(kept_.at(base), base);
  forget_shared();  // changed targets that are equal to kept values; nothing is reserved for copies
}

void ResultCache::abandon(Tape& tape) {
  for (const ValueId value : put_) {
    if (value < tape.value_count() && tape.has_value(value)) tape.drop(value);
  }
  put_.clear();
  lent_.clear();
  to_keep_.clear();
  forget_shared();
}

void ResultCache::forget_shared() {
  std::erase_if(kept_, [](const auto& kept) { return kept.second.use_count() > 1; });
}

Bytes ResultCache::held() const {
  Bytes sum = 0;
  for (const auto& [value, buffer] : kept_) sum += last_.bytes(value);
  return sum;
}

Bytes ResultCache::copied() const {
  Bytes sum = 0;
  for (const auto& [base, targets] : lent_) sum += last_.bytes(base);
  for (const auto& [value, bytes] : to_keep_) sum += is_result_[value] ? bytes : 0;
  return sum;
}

Bytes ResultCache::at_end(const Tape& tape, std::span<const ValueId> targets) const {
  std::set<ValueId> made;
  for (const ValueId target : targets) made.insert(behind_views(tape, target));
  Bytes sum = held() + copied();
  for (const ValueId value : made) {
    const bool is_there = lent_.contains(value) || tape.is_leaf(tape.producer(value));
    if (!is_there) sum += tape.bytes(value);
  }
  return sum;
}

Bytes ResultCache::bytes() const {
  Bytes sum = held();
  for (const auto& [value, bytes] : to_keep_) sum += bytes;
  return sum;
}

std::vector<bool> ResultCache::needed_nodes(const Tape& tape,
                                            const std::vector<ValueId>& targets) const {
  std::vector<bool> needed(tape.node_count());
  for (const ValueId target : targets) needed[tape.producer(target)] = true;
  for (NodeId node = tape.node_count(); node-- > 0;) {
    if (!needed[node]) continue;
    for (const ValueId input : tape.inputs(node)) needed[tape.producer(input)] = true;
  }
  return needed;
}

std::vector<bool> ResultCache::find_unchanged(const Tape& tape, const std::vector<bool>& needed) {
  const NodeId count = tape.node_count();
  std::vector<Hash128> hashes(count);
  std::vector<bool> hashed(count);
  std::vector<bool> unchanged(count);
  reads_leaves_.assign(count, false);
  for (NodeId node = 0; node < count; ++node) {
    if (!needed[node]) continue;
    const bool is_known = node < last_.node_count() && are_alike(tape, last_, node);
    if (tape.is_leaf(node)) {
      const ValueId value = tape.first_output(node);
      if (!tape.has_value(value)) continue;
      hashes[node] =
          hash_bytes_128({tape.buffer(value).get(), static_cast<std::size_t>(tape.bytes(value))});
      hashed[node] = true;
      reads_leaves_[node] = true;
      unchanged[node] = is_known && hashed_[node] && hashes_[node] == hashes[node];
    } else {
      for (const ValueId input : tape.inputs(node)) {
        if (reads_leaves_[tape.producer(input)]) reads_leaves_[node] = true;
      }
      unchanged[node] = is_known && std::ranges::all_of(tape.inputs(node), [&](ValueId input) {
                          return unchanged[tape.producer(input)];
                        });
    }
  }
  hashes_ = std::move(hashes);
  hashed_ = std::move(hashed);
  last_.copy_nodes(tape);
  return unchanged;
}

std::vector<NodeId> ResultCache::find_ends(const Tape& tape, const std::vector<ValueId>& targets,
                                           const std::vector<bool>& needed,
                                           const std::vector<bool>& unchanged) const {
  std::vector<bool> is_end(tape.node_count());
  const auto look = [&](ValueId value) {
    const NodeId node = tape.producer(behind_views(tape, value));
    // Values that depend on no leaf are not worth keeping.
    const bool keeps = unchanged[node] && reads_leaves_[node] && !tape.is_leaf(node) &&
                       !tape.operation(node).has_state_budget;
    if (keeps) is_end[node] = true;
  };
  std::ranges::for_each(targets, look);
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (needed[node] && !unchanged[node]) std::ranges::for_each(tape.inputs(node), look);
  }
  std::vector<NodeId> ends;
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (is_end[node]) ends.push_back(node);
  }
  return ends;
}

}  // namespace palimpsest
