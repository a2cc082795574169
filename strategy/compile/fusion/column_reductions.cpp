#include "strategy/compile/fusion/column_reductions.h"

#include <algorithm>

namespace palimpsest {

void join_column_reductions(const Tape& tape, const AccessMaps& access_maps, NodeId boundary,
                            Units& units) {
  std::vector<std::uint32_t> group_of(tape.node_count(), none);  // by elementwise node
  for (std::uint32_t unit = 0; unit < units.size(); ++unit) {
    const NodeId first = units[unit].own[0];
    if (access_maps.may_be_in_group(first)) {
      for (const NodeId node : units[unit].own) {
        if (!access_maps.is_fold(node)) group_of[node] = unit;
      }
      continue;
    }
    const FoldShape shape = access_maps.fold_shape(first);
    if (shape.columns <= 1) continue;
    const NodeId maker = tape.producer(access_maps.links(first)[0].value);
    if (group_of[maker] == none || (maker < boundary) != (first < boundary)) continue;
    Unit& group = units[group_of[maker]];
    if (group.own.size() + group.duplicates.size() >= most_together) continue;
    if (!folded(group, access_maps).fits(shape)) continue;
    group.own.insert(std::ranges::upper_bound(group.own, first), first);
    units[unit] = {};
  }
  std::erase_if(units, [](const Unit& unit) { return unit.own.empty(); });
}

}  // namespace palimpsest
