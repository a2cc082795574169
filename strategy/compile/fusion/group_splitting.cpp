#include "strategy/compile/fusion/group_splitting.h"

#include <algorithm>
#include <iterator>
#include <ranges>

namespace palimpsest {
namespace {

bool holds(std::span<const NodeId> nodes, NodeId node) {
  return std::ranges::binary_search(nodes, node);
}

std::vector<NodeId> both(std::span<const NodeId> a, std::span<const NodeId> b) {
  std::vector<NodeId> both;
  std::ranges::merge(a, b, std::back_inserter(both));
  return both;
}

std::vector<NodeId> without(std::span<const NodeId> all, std::span<const NodeId> some) {
  std::vector<NodeId> rest;
  std::ranges::set_difference(all, some, std::back_inserter(rest));
  return rest;
}

/// The unit of some of a unit's own nodes, with the duplicates that these need.
Unit unit_of(const Tape& tape, const AccessMaps& access_maps, const Unit& whole,
             std::vector<NodeId> own) {
  std::vector<NodeId> duplicates;
  std::vector<NodeId> open = own;
  while (!open.empty()) {
    const NodeId node = open.back();
    open.pop_back();
    for (const Link& link : access_maps.links(node)) {
      const NodeId producer = tape.producer(link.value);
      if (!link.in_order || !holds(whole.duplicates, producer)) continue;
      const auto place = std::ranges::lower_bound(duplicates, producer);
      if (place != duplicates.end() && *place == producer) continue;
      duplicates.insert(place, producer);
      open.push_back(producer);
    }
  }
  return {std::move(own), std::move(duplicates)};
}

}  // namespace

GroupSplitting::GroupSplitting(const Tape& tape, const AccessMaps& access_maps, NodeId boundary,
                               const std::vector<bool>& kept, const std::vector<bool>& present,
                               Units& units)
    : tape_(tape),
      access_maps_(access_maps),
      boundary_(boundary),
      present_(present),
      units_(units),
      has_moved_(tape.node_count()),
      is_kept_(tape.value_count()) {
  for (ValueId value = 0; value < tape.value_count(); ++value) {
    if (kept[value]) is_kept_[behind_views(tape, present, value)] = true;
  }
  note_positions();
}

void GroupSplitting::note_positions() {
  first_backward_ = units_.size();
  maker_.assign(tape_.node_count(), none);
  readers_.assign(tape_.value_count(), {});
  for (std::uint32_t at = 0; at < units_.size(); ++at) note(at);
}

void GroupSplitting::note(std::uint32_t at) {
  const Unit& unit = units_[at];
  if (unit.own.back() >= boundary_) first_backward_ = std::min<std::size_t>(first_backward_, at);
  for (const NodeId node : unit.own) maker_[node] = at;
  for (const NodeId node : unit.nodes()) {
    for (const Link& link : access_maps_.links(node)) {
      if (link.in_order && unit.makes(tape_.producer(link.value))) continue;
      Readers& readers = readers_[behind_views(tape_, present_, link.value)];
      if (readers.last == at) continue;
      readers = {std::min(readers.first, at), at, readers.last};
    }
  }
}

/// The own nodes of a unit, by the last unit whose results they need. The earliest ones come first.
GroupSplitting::Parts GroupSplitting::by_inputs(std::uint32_t at) const {
  const Unit& unit = units_[at];
  const std::vector<NodeId> nodes = unit.nodes();
  const std::size_t earliest =
      unit.own[0] >= boundary_ && first_backward_ > 0 ? first_backward_ - 1 : 0;
  std::vector<std::size_t> ready(nodes.size(), earliest);
  Parts parts;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const Link& link : access_maps_.links(nodes[i])) {
      const NodeId producer = tape_.producer(link.value);
      const auto member = std::ranges::lower_bound(nodes, producer);
      if (link.in_order && member != nodes.end() && *member == producer) {
        ready[i] = std::max(ready[i], ready[static_cast<std::size_t>(member - nodes.begin())]);
      } else if (maker_[producer] != none) {
        ready[i] = std::max<std::size_t>(ready[i], maker_[producer]);
      }
    }
    if (holds(unit.own, nodes[i])) parts.push_back({ready[i], {nodes[i]}});
  }
  return parts;
}

/// The own nodes of a unit, by the unit before the first one that reads their results. Nodes of the
/// forward part stay in it.
GroupSplitting::Parts GroupSplitting::by_readers(std::uint32_t at) const {
  const std::vector<NodeId>& own = units_[at].own;
  const std::size_t end =
      own.back() < boundary_ ? std::max<std::size_t>(first_backward_, 1) : units_.size();
  Parts parts;
  for (const NodeId node : own) {
    const Readers& readers = readers_[tape_.first_output(node)];
    parts.push_back({std::min<std::size_t>(readers.first, end) - 1, {node}});
  }
  const auto part_of = [&](NodeId node) -> Part* {
    const auto found = std::ranges::lower_bound(own, node);
    return found != own.end() && *found == node
               ? &parts[static_cast<std::size_t>(found - own.begin())]
               : nullptr;
  };
  for (Part& part : std::views::reverse(parts)) {
    const Unit alone = unit_of(tape_, access_maps_, units_[at], part.own);
    for (const NodeId node : alone.nodes()) {
      for (const Link& link : access_maps_.links(node)) {
        Part* const read = link.in_order ? part_of(tape_.producer(link.value)) : nullptr;
        if (read != nullptr) read->position = std::min(read->position, part.position);
      }
    }
  }
  for (Part& part : parts) {  // a reduction runs with what it reduces
    if (!access_maps_.is_fold(part.own[0])) continue;
    const Part* const read = part_of(tape_.producer(access_maps_.links(part.own[0])[0].value));
    if (read != nullptr) part.position = read->position;
  }
  return parts;
}

/// True if a unit other than `at` reads the value at `peak` or later.
bool GroupSplitting::is_read_elsewhere(ValueId value, std::uint32_t at, std::size_t peak) const {
  const Readers& readers = readers_[value];
  const std::uint32_t other = readers.last == at ? readers.before_last : readers.last;
  return other != none && other >= peak;
}

/// The bytes in memory at `peak` because of a unit whose own nodes `before` run earlier and whose
/// others run later.
Bytes GroupSplitting::held(std::uint32_t at, std::size_t peak,
                           std::span<const NodeId> before) const {
  const Unit& unit = units_[at];
  std::vector<ValueId> values;
  for (const NodeId own : unit.own) {
    if (holds(before, own)) {
      const ValueId made = tape_.first_output(own);
      if (is_kept_[made] || is_read_elsewhere(made, at, peak)) values.push_back(made);
      continue;
    }
    const Unit later = unit_of(tape_, access_maps_, unit, {own});
    for (const NodeId node : later.nodes()) {
      for (const Link& link : access_maps_.links(node)) {
        const NodeId producer = tape_.producer(link.value);
        const ValueId value = behind_views(tape_, present_, link.value);
        if (link.in_order && unit.makes(producer)) {
          if (holds(before, producer)) values.push_back(value);
        } else if (!is_kept_[value] && !is_read_elsewhere(value, at, peak) &&
                   maker_[tape_.producer(value)] < peak) {
          values.push_back(value);
        }
      }
    }
  }
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  Bytes bytes = 0;
  for (const ValueId value : values) bytes += tape_.bytes(value);
  return bytes;
}

/// Puts nodes together, in order, until moving them to the other side of `peak` saves memory.
/// `before(moved)` are the nodes that run before `peak` if `moved` are on the other side. Returns
/// the parts to move; none if the unit is not split.
template <class Before>
GroupSplitting::Parts GroupSplitting::chosen(std::uint32_t at, std::size_t peak, Parts nodes,
                                             Before before) const {
  Parts parts;
  std::vector<NodeId> moved;
  std::vector<NodeId> open;
  for (auto node = nodes.begin(); node != nodes.end(); ++node) {
    open.insert(std::ranges::upper_bound(open, node->own[0]), node->own[0]);
    const bool is_last = node + 1 == nodes.end() || (node + 1)->position != node->position;
    if (!is_last || !is_group(open)) continue;
    std::vector<NodeId> with = both(moved, open);
    if (held(at, peak, before(with)) >= held(at, peak, before(moved))) continue;
    moved = std::move(with);
    parts.push_back({node->position, std::exchange(open, {})});
  }
  const std::vector<NodeId> rest = without(units_[at].own, moved);
  const bool is_whole = rest.empty() && parts.size() == 1;
  const bool may_move = is_whole ? !has_moved_[moved[0]] : rest.empty() || is_group(rest);
  return may_move ? parts : Parts();
}

GroupSplitting::Parts GroupSplitting::early_parts(std::uint32_t at, std::size_t peak) const {
  if (!is_group(units_[at].own)) return {};
  Parts nodes = by_inputs(at);
  std::erase_if(nodes,
                [&](const Part& node) { return node.position >= peak || node.position + 1 >= at; });
  std::ranges::stable_sort(nodes, {}, &Part::position);
  return chosen(at, peak, std::move(nodes), [](std::span<const NodeId> moved) { return moved; });
}

GroupSplitting::Parts GroupSplitting::late_parts(std::uint32_t at, std::size_t peak) const {
  if (!is_group(units_[at].own)) return {};
  Parts nodes = by_readers(at);
  std::erase_if(nodes,
                [&](const Part& node) { return node.position < peak || node.position <= at; });
  std::ranges::stable_sort(nodes, std::greater(), &Part::position);
  return chosen(at, peak, std::move(nodes),
                [&](std::span<const NodeId> moved) { return without(units_[at].own, moved); });
}

bool GroupSplitting::may_split() const {
  // Run by itself, a node that cannot write over an input frees it before its readers run.
  const auto takes_memory = [&](NodeId node) {
    const ValueId made = tape_.first_output(node);
    return std::ranges::all_of(access_maps_.links(node), [&](const Link& link) {
      return tape_.dtype(link.value) != tape_.dtype(made) ||
             tape_.bytes(link.value) < tape_.bytes(made);
    });
  };
  for (std::uint32_t at = 0; at < units_.size(); ++at) {
    if (!units_[at].duplicates.empty()) return true;
    if (units_[at].own.size() == 1) continue;
    if (is_group(units_[at].own) && std::ranges::any_of(units_[at].own, takes_memory)) return true;
    if (!early_parts(at, at).empty() || !late_parts(at, at + 1).empty()) return true;
  }
  return false;
}

/// The own nodes of a group one by one, each with its reductions. With `apart`, a reduction that
/// reads a whole value runs by itself.
GroupSplitting::Parts GroupSplitting::by_nodes(std::uint32_t at, bool apart) const {
  const std::vector<NodeId>& own = units_[at].own;
  if (!is_group(own)) return {};
  Parts parts;
  for (const NodeId node : own) {
    const bool is_fold = access_maps_.is_fold(node);
    const ValueId read = is_fold ? access_maps_.links(node)[0].value : ValueId{none};
    if (!is_fold || (apart && tape_.inputs(node)[0] == read)) {
      parts.push_back({at, {node}});
      continue;
    }
    const NodeId reduced = tape_.producer(read);
    const auto part =
        std::ranges::find_if(parts, [&](const Part& each) { return each.own[0] == reduced; });
    internal_check(part != parts.end(), "a group reduces a value that it does not own");
    part->own.push_back(node);
  }
  return parts.size() > 1 ? parts : Parts();
}

/// Moves the parts of the units in a range. Returns false if there are none.
template <class PartsOf>
bool GroupSplitting::move(std::size_t begin, std::size_t end, PartsOf parts_of) {
  std::vector<Units> after(units_.size());  // by position: units that will follow it
  bool any = false;
  for (std::size_t at = begin; at < end; ++at) {
    Parts parts = parts_of(static_cast<std::uint32_t>(at));
    if (parts.empty()) continue;
    any = true;
    if (parts.size() == 1) has_moved_[parts[0].own[0]] = true;
    const Unit whole = std::exchange(units_[at], {});
    std::vector<NodeId> rest = whole.own;
    for (Part& part : parts) {
      rest = without(rest, part.own);
      after[part.position].push_back(unit_of(tape_, access_maps_, whole, std::move(part.own)));
    }
    if (!rest.empty()) units_[at] = unit_of(tape_, access_maps_, whole, std::move(rest));
  }
  if (!any) return false;
  Units units;
  for (std::size_t at = 0; at < units_.size(); ++at) {
    if (!units_[at].own.empty()) units.push_back(std::move(units_[at]));
    std::ranges::move(after[at], std::back_inserter(units));
  }
  units_ = std::move(units);
  note_positions();
  return true;
}

bool GroupSplitting::lower(std::size_t peak, std::span<const std::size_t> over) {
  // A part that moves late may have a reader that moves early, so only one kind moves at once.
  return move(peak, units_.size(), [&](std::uint32_t at) { return early_parts(at, peak); }) ||
         move(0, peak, [&](std::uint32_t at) { return late_parts(at, peak); }) ||
         move(over.front(), over.back() + 1, [&](std::uint32_t at) {
           return std::ranges::binary_search(over, at) ? by_nodes(at) : Parts();
         });
}

void GroupSplitting::split_all(bool apart) {
  Units units;
  for (std::uint32_t at = 0; at < units_.size(); ++at) {
    Parts parts = by_nodes(at, apart);
    if (parts.empty()) units.push_back({std::move(units_[at].own)});
    for (Part& part : parts) units.push_back({std::move(part.own)});
  }
  std::ranges::sort(units, {}, [](const Unit& unit) { return unit.own[0]; });
  units_ = std::move(units);
}

}  // namespace palimpsest
