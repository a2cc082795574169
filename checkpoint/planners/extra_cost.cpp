#include "checkpoint/planners/extra_cost.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace palimpsest {

ExtraCost::ExtraCost(const LiveSets& sets, Bytes budget) : sets_(sets), budget_(budget) {}

double ExtraCost::least(Set live, const LiveSets::Rest& rest) {
  find_around(live, rest);
  if (!find_narrow(rest)) return std::numeric_limits<double>::infinity();
  counted_.clear();
  double seconds = 0;
  const auto count = [&](Narrow& narrow) {
    find_items(narrow, rest);
    Charges& charges = counted_.emplace_back(&narrow, Charges{}).second;
    narrow.seconds = solve(narrow.over, charges);
  };
  for (Narrow& narrow : narrow_) {
    count(narrow);
    counted_.clear();
  }
  std::sort(narrow_.begin(), narrow_.end(),
            [](const Narrow& a, const Narrow& b) { return a.seconds > b.seconds; });
  for (Narrow& narrow : narrow_) {
    count(narrow);
    if (narrow.seconds <= 0) counted_.pop_back();
    seconds += narrow.seconds;
  }
  return seconds;
}

void ExtraCost::find_around(Set live, const LiveSets::Rest& rest) {
  const std::uint32_t count = rest.count;
  const auto node = [&](std::uint32_t k) -> const LiveSets::Node& {
    return sets_.nodes()[rest.nodes[k]];
  };
  const auto for_each_before = [&](std::uint32_t k, auto f) {
    for (Set missing = node(k).reads & ~live; missing != 0;) {
      const std::uint32_t producer =
          sets_.producer(static_cast<std::uint32_t>(std::countr_zero(missing)));
      missing &= ~sets_.nodes()[producer].makes;
      f(index_[producer]);
    }
  };
  for (std::uint32_t k = 0; k < count; ++k) {
    index_[rest.nodes[k]] = k;
    around_[k] = {0, 0, sets_.targets(), 0, 0};
  }
  for (std::uint32_t k = 0; k < count; ++k) {  // the last node comes first
    const Around& here = around_[k];
    for_each_before(k, [&](std::uint32_t before) {
      Around& there = around_[before];
      there.after |= here.after | Mask{1} << k;
      there.read_after |= here.read_after | node(k).reads;
      there.made_after |= here.made_after | node(k).makes;
    });
  }
  for (std::uint32_t k = count; k-- > 0;) {
    Around& here = around_[k];
    for_each_before(k, [&](std::uint32_t before) {
      here.before |= around_[before].before | Mask{1} << before;
      here.made_before |= around_[before].made_before | node(before).makes;
    });
  }
}

bool ExtraCost::find_narrow(const LiveSets::Rest& rest) {
  narrow_.clear();
  const auto& storages = sets_.storages();
  for (std::uint32_t k = 0; k < rest.count; ++k) {
    const LiveSets::Node& node = sets_.nodes()[rest.nodes[k]];
    const Set own = node.reads | node.makes;
    const Bytes room = budget_ - node.workspace - sets_.bytes(own) + node.taken();
    if (room < 0) return false;
    const Set wanted = around_[k].read_after & ~around_[k].made_after & ~node.makes;
    if (sets_.bytes(wanted) <= room) continue;
    // Values that have not been made yet may be made later.
    const Set later = rest.makes & ~around_[k].made_before;
    Narrow narrow{k, 0, -room, 0};
    for (std::uint32_t s = 0; s < storages.size(); ++s) {
      const Set values = storages[s].values;
      const Set root = values & -values;
      if ((values & wanted) == 0 || (values & own) != 0 || (root & later) != 0) continue;
      narrow.storages |= Mask{1} << s;
      narrow.over += storages[s].bytes;
    }
    if (narrow.over > 0) narrow_.push_back(narrow);
  }
  return true;
}

LiveSets::Set ExtraCost::read_between(std::uint32_t a, std::uint32_t b,
                                      const LiveSets::Rest& rest) const {
  Set reads = 0;
  const Mask between =
      a > b ? around_[a].after & around_[b].before : around_[b].after & around_[a].before;
  for_each_bit(between, [&](std::uint32_t k) { reads |= sets_.nodes()[rest.nodes[k]].reads; });
  return reads;
}

void ExtraCost::find_items(const Narrow& narrow, const LiveSets::Rest& rest) {
  items_.clear();
  for_each_bit(narrow.storages, [&](std::uint32_t s) {
    const LiveSets::Storage& storage = sets_.storages()[s];
    items_.push_back({s, storage.seconds, static_cast<double>(storage.bytes)});
  });
  for (const auto& [other, charges] : counted_) {
    if ((other->storages & narrow.storages) == 0) continue;
    const Set reads = read_between(other->index, narrow.index, rest);
    for (Item& item : items_) {
      const bool made_for_each = (sets_.storages()[item.storage].values & reads) != 0;
      if (!made_for_each) item.seconds = std::max(0.0, item.seconds - charges[item.storage]);
    }
  }
}

double ExtraCost::solve(Bytes over, Charges& charges) {
  std::sort(items_.begin(), items_.end(),
            [](const Item& a, const Item& b) { return a.seconds * b.bytes < b.seconds * a.bytes; });
  double seconds = 0;
  auto left = static_cast<double>(over);
  double rate = 0;  // seconds per byte of the last item
  for (const Item& item : items_) {
    if (left > 0) {
      rate = item.seconds / item.bytes;
      seconds += rate * std::min(left, item.bytes);
      left -= item.bytes;
    }
    charges[item.storage] = std::min(item.seconds, rate * item.bytes);
  }
  return seconds;
}

}  // namespace palimpsest
