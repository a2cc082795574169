#include "strategy/compile/fusion/sibling_fusion.h"

#include <algorithm>
#include <iterator>

namespace palimpsest {
namespace {

class SiblingFusion {
 public:
  SiblingFusion(const Tape& tape, const AccessMaps& access_maps, NodeId boundary,
                const std::vector<bool>& kept, Units& units)
      : tape_(tape),
        access_maps_(access_maps),
        boundary_(boundary),
        kept_(kept),
        units_(units),
        maker_(tape.node_count(), none),
        readers_(units.size()),
        last_reader_(tape.value_count(), 0),
        sibling_(tape.value_count(), none) {}

  void run() {
    note_readers();
    for (std::uint32_t later = 0; later < units_.size(); ++later) {
      if (!access_maps_.may_be_in_group(units_[later].own[0])) continue;
      if (units_[later].own[0] >= boundary_) {
        for (const std::uint32_t earlier : siblings(later)) {
          if (may_fuse(earlier, later)) fuse(earlier, later);
        }
      }
      for_links(units_[later], [&](const Link& link) {
        if (link.in_order) sibling_[link.value] = later;
      });
    }
    std::erase_if(units_, [](const Unit& unit) { return unit.own.empty(); });
  }

 private:
  template <class F>
  void for_links(const Unit& unit, F f) const {
    for (const NodeId node : unit.nodes()) {
      for (const Link& link : access_maps_.links(node)) f(link);
    }
  }

  void note_readers() {
    for (std::uint32_t unit = 0; unit < units_.size(); ++unit) {
      for (const NodeId node : units_[unit].own) maker_[node] = unit;
    }
    for (std::uint32_t unit = 0; unit < units_.size(); ++unit) {
      for_links(units_[unit], [&](const Link& link) {
        const NodeId node = tape_.producer(link.value);
        if (link.in_order && units_[unit].makes(node)) return;
        last_reader_[link.value] = unit;
        if (maker_[node] != none) readers_[maker_[node]].push_back(unit);
      });
    }
  }

  /// The last groups before `later` that read its arrays element by element, the latest first.
  std::vector<std::uint32_t> siblings(std::uint32_t later) const {
    std::vector<std::uint32_t> found;
    for_links(units_[later], [&](const Link& link) {
      const std::uint32_t unit = sibling_[link.value];
      if (link.in_order && unit != none) found.push_back(unit);
    });
    std::ranges::sort(found, std::greater());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

  std::int64_t elements(const Unit& unit) const {
    return tape_.shape(tape_.first_output(unit.own[0])).elements();
  }

  /// True when a unit before `later` reads a value of the unit.
  bool is_read_before(std::uint32_t unit, std::uint32_t later) const {
    return !readers_[unit].empty() && readers_[unit].front() < later;
  }

  bool is_number(ValueId value) const { return tape_.shape(value).elements() == 1; }

  bool may_fuse(std::uint32_t earlier, std::uint32_t later) const {
    const Unit& a = units_[earlier];
    const Unit& b = units_[later];
    if (elements(a) != elements(b) || is_read_before(earlier, later)) return false;
    if (!folded(a, access_maps_).fits(folded(b, access_maps_))) return false;
    return together(a, b).nodes().size() <= most_together && are_in_order(earlier, later) &&
           takes_no_more(earlier, later);
  }

  /// True if all nodes of `earlier` come before those of `later`, which reads their values element
  /// by element.
  bool are_in_order(std::uint32_t earlier, std::uint32_t later) const {
    bool are = units_[earlier].own.back() < units_[later].own.front();
    for_links(units_[later], [&](const Link& link) {
      const NodeId maker = tape_.producer(link.value);
      if (maker_[maker] == earlier && (!link.in_order || access_maps_.is_fold(maker))) are = false;
    });
    return are;
  }

  /// True if no array is in memory for longer when `earlier` runs as part of `later`: what it reads
  /// is there then, and can still be written over. No unit after `later` reads the arrays it makes.
  bool takes_no_more(std::uint32_t earlier, std::uint32_t later) const {
    const Unit& unit = units_[earlier];
    bool takes = false;
    for_links(unit, [&](const Link& link) {
      const ValueId value = link.value;
      const bool is_made = link.in_order && unit.makes(tape_.producer(value));
      if (is_made || kept_[value] || is_number(value)) return;
      const std::uint32_t last = last_reader_[value];
      if (last < later || (last == later && !link.in_order)) takes = true;
    });
    for (const NodeId node : unit.own) {
      const ValueId value = tape_.first_output(node);
      if (!kept_[value] && !is_number(value) && last_reader_[value] > later) takes = true;
    }
    return !takes;
  }

  static Unit together(const Unit& a, const Unit& b) {
    Unit unit{};
    std::ranges::merge(a.own, b.own, std::back_inserter(unit.own));
    std::vector<NodeId> duplicates;
    std::ranges::set_union(a.duplicates, b.duplicates, std::back_inserter(duplicates));
    std::ranges::set_difference(duplicates, unit.own, std::back_inserter(unit.duplicates));
    return unit;
  }

  void fuse(std::uint32_t earlier, std::uint32_t later) {
    units_[later] = together(units_[earlier], units_[later]);
    for (const NodeId node : units_[earlier].own) maker_[node] = later;
    units_[earlier] = {};
    std::vector<std::uint32_t> readers;
    std::ranges::merge(readers_[earlier], readers_[later], std::back_inserter(readers));
    std::erase(readers, later);
    readers_[later] = std::move(readers);
  }

  const Tape& tape_;
  const AccessMaps& access_maps_;
  NodeId boundary_;
  const std::vector<bool>& kept_;
  Units& units_;
  std::vector<std::uint32_t> maker_;                 // by node: the unit whose own node it is
  std::vector<std::vector<std::uint32_t>> readers_;  // by unit, in order
  std::vector<std::uint32_t> last_reader_;           // by value: the last unit that reads it
  std::vector<std::uint32_t> sibling_;  // by value: the last group that reads it element by element
};

}  // namespace

void fuse_siblings(const Tape& tape, const AccessMaps& access_maps, NodeId boundary,
                   const std::vector<bool>& kept, Units& units) {
  SiblingFusion(tape, access_maps, boundary, kept, units).run();
}

}  // namespace palimpsest
