#include "strategy/compile/fusion/groups.h"

#include <algorithm>
#include <iterator>

namespace palimpsest {
namespace {

/// More nodes would not fit the cache tile by tile.
constexpr std::size_t most_members = 24;
/// Those over so few elements do fit.
constexpr std::int64_t few_elements = 64;
constexpr std::size_t most_members_of_few = 96;

}  // namespace

bool Unit::makes(NodeId node) const {
  return std::binary_search(own.begin(), own.end(), node) ||
         std::binary_search(duplicates.begin(), duplicates.end(), node);
}

std::vector<NodeId> Unit::nodes() const {
  std::vector<NodeId> all;
  std::merge(own.begin(), own.end(), duplicates.begin(), duplicates.end(), std::back_inserter(all));
  return all;
}

FoldShape folded(const Unit& unit, const AccessMaps& access_maps) {
  const auto fold =
      std::ranges::find_if(unit.own, [&](NodeId node) { return access_maps.is_fold(node); });
  return fold == unit.own.end() ? FoldShape() : access_maps.fold_shape(*fold);
}

Groups::Groups(const Tape& tape, const AccessMaps& access_maps, NodeId boundary)
    : tape_(tape),
      access_maps_(access_maps),
      boundary_(boundary),
      unit_of_(tape.node_count(), none) {
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (!access_maps.is_needed(node)) continue;
    const bool may_join =
        access_maps.may_be_in_group(node) || access_maps.fold_shape(node).columns == 1;
    if (may_join && add_to_others(node)) continue;
    settle(static_cast<UnitId>(units_.size()), node);
  }
}

/// The number of elements over which the node runs as part of a group.
std::int64_t Groups::elements(NodeId node) const {
  const ValueId value =
      access_maps_.is_fold(node) ? tape_.inputs(node)[0] : tape_.first_output(node);
  return tape_.shape(value).elements();
}

/// Adds the node to the unit, which may be a new one.
void Groups::settle(UnitId unit, NodeId node) {
  if (unit == units_.size()) {
    units_.push_back({.members = {}, .place = next_place_++});
    if (access_maps_.may_be_in_group(node)) units_.back().elements = elements(node);
  }
  units_[unit].members.push_back(node);
  unit_of_[node] = unit;
  note_reads(unit, node);
}

/// Notes that the unit reads what its member `node` reads.
void Groups::note_reads(UnitId unit, NodeId node) {
  for (const Link& link : access_maps_.links(node)) {
    const UnitId read = unit_of_[tape_.producer(link.value)];
    if (read == unit || read == none) continue;
    units_[read].first_reader = std::min(units_[read].first_reader, units_[unit].place);
  }
}

/// The elementwise groups whose elements the node reads in order.
std::vector<Groups::UnitId> Groups::candidates(NodeId node) const {
  std::vector<UnitId> found;
  for (const Link& link : access_maps_.links(node)) {
    const UnitId unit = unit_of_[tape_.producer(link.value)];
    if (!link.in_order || unit == none || units_[unit].elements != elements(node)) {
      continue;
    }
    if ((units_[unit].members[0] < boundary_) != (node < boundary_)) continue;
    if (std::find(found.begin(), found.end(), unit) == found.end()) found.push_back(unit);
  }
  return found;
}

/// Adds the node to groups whose elements it reads: merges all of them, or else joins the last.
/// Returns false when none has a place for it.
bool Groups::add_to_others(NodeId node) {
  const std::vector<UnitId> units = candidates(node);
  if (units.size() > 1 && merge(units, node)) return true;
  return std::any_of(units.rbegin(), units.rend(), [&](UnitId unit) { return join(unit, node); });
}

std::size_t Groups::most_members_with(NodeId node) const {
  return elements(node) <= few_elements ? most_members_of_few : most_members;
}

/// Adds the node to a unit. Returns false and changes nothing when that has no place. The unit's
/// place is after all that its members read, so only what the node reads matters.
bool Groups::join(UnitId unit, NodeId node) {
  Growing& own = units_[unit];
  const FoldShape folded = access_maps_.fold_shape(node);
  if (!own.folded.fits(folded)) return false;
  if (own.members.size() + 1 > most_members_with(node)) return false;
  std::int64_t behind = -1;  // largest place of an input
  for (const Link& link : access_maps_.links(node)) {
    const UnitId read = unit_of_[tape_.producer(link.value)];
    if (read == none) continue;
    if (read != unit) {
      behind = std::max<std::int64_t>(behind, units_[read].place);
    } else if (!link.in_order) {
      return false;  // the elements may be in a tile that has not been computed yet
    }
  }
  const bool has_readers = own.first_reader != none;
  if (has_readers && own.place <= behind) return false;
  if (!has_readers) own.place = next_place_++;
  if (folded.elements > 0) own.folded = folded;
  settle(unit, node);
  return true;
}

/// Merges several units and the node into one. Returns false and changes nothing when it has no
/// place.
bool Groups::merge(std::span<const UnitId> units, NodeId node) {
  std::vector<NodeId> members{node};
  std::uint32_t before = none;  // smallest place of a reader
  FoldShape together = access_maps_.fold_shape(node);
  for (const UnitId unit : units) {
    const FoldShape& own = units_[unit].folded;
    if (!together.fits(own)) return false;
    if (own.elements > 0) together = own;
    members.insert(members.end(), units_[unit].members.begin(), units_[unit].members.end());
    before = std::min(before, units_[unit].first_reader);
  }
  if (members.size() > most_members_with(node)) return false;
  std::int64_t behind = -1;  // largest place of an input
  const auto inside = [&](UnitId unit) {
    return std::find(units.begin(), units.end(), unit) != units.end();
  };
  for (const NodeId member : members) {
    for (const Link& link : access_maps_.links(member)) {
      const UnitId unit = unit_of_[tape_.producer(link.value)];
      if (unit == none) continue;
      if (!inside(unit)) {
        behind = std::max<std::int64_t>(behind, units_[unit].place);
      } else if (!link.in_order) {
        return false;  // the elements may be in a tile that has not been computed yet
      }
    }
  }
  std::int64_t place = before == none ? std::int64_t{next_place_} : -1;
  for (const UnitId unit : units) {
    const std::int64_t own = units_[unit].place;
    if (own > behind && own < before) place = std::max(place, own);
  }
  if (place <= behind) return false;
  if (place == next_place_) ++next_place_;

  Growing& unit = units_[units[0]];
  unit.place = static_cast<std::uint32_t>(place);
  unit.first_reader = before;
  unit.folded = together;
  std::sort(members.begin(), members.end());
  members.pop_back();  // the node itself, which is settled below
  for (const NodeId member : members) unit_of_[member] = units[0];
  unit.members = std::move(members);
  for (const UnitId other : units.subspan(1)) units_[other].members.clear();
  for (const NodeId member : unit.members) note_reads(units[0], member);
  settle(units[0], node);
  return true;
}

Units Groups::in_order() const {
  std::vector<UnitId> order;
  for (UnitId unit = 0; unit < units_.size(); ++unit) {
    if (!units_[unit].members.empty()) order.push_back(unit);
  }
  std::sort(order.begin(), order.end(),
            [&](UnitId a, UnitId b) { return units_[a].place < units_[b].place; });
  Units units;
  units.reserve(order.size());
  for (const UnitId unit : order) units.push_back({units_[unit].members});
  return units;
}

}  // namespace palimpsest
