#include "strategy/compile/fusion/producer_duplication.h"

#include <algorithm>
#include <iterator>

namespace palimpsest {
namespace {

/// Most nodes duplicated to save one array in memory.
constexpr std::size_t most_trivial_nodes = 2;
/// Most nodes duplicated in the backward part for one value.
constexpr std::size_t most_cloned_nodes = 16;
/// Most nodes of a group, including duplicates.
constexpr std::size_t most_members_with_clones = 48;

/// The nodes of a group that recompute one of its values, and their inputs.
struct Recipe {
  ValueId value;
  std::vector<NodeId> nodes;
  std::vector<ValueId> inputs;
};

/// The recipe for a value of `unit`, from values of other units and values for which `is_there`
/// holds.
template <class IsThere>
Recipe recipe_for(const Tape& tape, const AccessMaps& access_maps, const Unit& unit, ValueId value,
                  IsThere is_there) {
  Recipe recipe{value, {}, {}};
  std::vector<NodeId> open{tape.producer(value)};
  while (!open.empty()) {
    // Visit the latest node first: its inputs come before it.
    const auto latest = std::max_element(open.begin(), open.end());
    const NodeId node = *latest;
    open.erase(latest);
    recipe.nodes.push_back(node);
    for (const Link& link : access_maps.links(node)) {
      const NodeId producer = tape.producer(link.value);
      if (!unit.makes(producer) || is_there(link.value)) {
        recipe.inputs.push_back(link.value);
      } else if (std::find(open.begin(), open.end(), producer) == open.end()) {
        open.push_back(producer);
      }
    }
  }
  return recipe;
}

class Cloning {
 public:
  Cloning(const Tape& tape, const AccessMaps& access_maps, NodeId boundary,
          const std::vector<bool>& held, Units& units)
      : tape_(tape), access_maps_(access_maps), boundary_(boundary), held_(held), units_(units) {}

  void clone_trivial() {
    note_readers();
    for (const Unit& unit : units_) {
      if (!is_group(unit)) continue;
      for (const NodeId node : unit.own) {
        const ValueId value = tape_.first_output(node);
        if (!access_maps_.is_pointwise(node) || held_[value]) continue;
        if (in_memory_[value] || readers_[value].empty()) continue;
        clone_trivial(unit, value);
      }
    }
  }

  void clone_into_backward() {
    note_readers();
    for (const Unit& unit : units_) {
      if (!is_backward(unit)) continue;
      for (const NodeId node : unit.nodes()) hold_what_it_reads(node, is_group(unit));
    }
    for (auto unit = units_.rbegin(); unit != units_.rend(); ++unit) {
      if (!is_backward(*unit) && is_group(*unit)) decide(*unit);
    }
  }

 private:
  bool is_group(const Unit& unit) const { return access_maps_.may_be_in_group(unit.own[0]); }
  bool is_backward(const Unit& unit) const { return unit.own[0] >= boundary_; }

  /// Notes which groups read each value in order, and which values must be in memory.
  void note_readers() {
    readers_.assign(tape_.value_count(), {});
    in_memory_.assign(tape_.value_count(), false);
    for (std::uint32_t unit = 0; unit < units_.size(); ++unit) {
      for (const NodeId node : units_[unit].nodes()) {
        for (const auto& [value, in_order] : access_maps_.links(node)) {
          if (!in_order || !is_group(units_[unit])) {
            in_memory_[value] = true;
          } else if (!units_[unit].makes(tape_.producer(value)) &&
                     (readers_[value].empty() || readers_[value].back() != unit)) {
            readers_[value].push_back(unit);
          }
        }
      }
    }
  }

  void clone_trivial(const Unit& unit, ValueId value) {
    std::vector<Recipe> recipes;
    for (const std::uint32_t reader : readers_[value]) {
      const std::vector<ValueId> reads = reads_of(units_[reader], value);
      const auto is_there = [&](ValueId input) {
        return std::binary_search(reads.begin(), reads.end(), input);
      };
      Recipe recipe = recipe_for(tape_, access_maps_, unit, value, is_there);
      const std::size_t members = units_[reader].own.size() + units_[reader].duplicates.size();
      if (recipe.nodes.size() > most_trivial_nodes || members >= most_members_with_clones) return;
      if (!std::all_of(recipe.inputs.begin(), recipe.inputs.end(), is_there)) return;
      recipes.push_back(std::move(recipe));
    }
    for (std::size_t i = 0; i < recipes.size(); ++i) {
      add_clones(recipes[i], units_[readers_[value][i]]);
    }
  }

  /// The values that a unit reads from memory, except `value`.
  std::vector<ValueId> reads_of(const Unit& unit, ValueId value) const {
    std::vector<ValueId> reads;
    for (const NodeId node : unit.nodes()) {
      for (const Link& link : access_maps_.links(node)) {
        if (link.value == value || unit.makes(tape_.producer(link.value))) continue;
        reads.push_back(link.value);
      }
    }
    std::sort(reads.begin(), reads.end());
    return reads;
  }

  /// Marks the inputs of a backward node as held, unless they may be recomputed.
  void hold_what_it_reads(NodeId node, bool in_group) {
    for (const auto& [value, in_order] : access_maps_.links(node)) {
      const NodeId producer = tape_.producer(value);
      const bool again = in_group && in_order && producer < boundary_;
      if (!again || !access_maps_.is_pointwise(producer)) {
        held_[value] = true;
      }
    }
  }

  /// Recomputes either all values of a forward group that backward groups read, or none.
  void decide(const Unit& unit) {
    std::vector<Recipe> recipes;
    std::vector<ValueId> inputs;
    Bytes saved = 0;
    for (const NodeId node : unit.own) {
      const ValueId value = tape_.first_output(node);
      if (held_[value] || !is_read_in_backward(value)) continue;
      recipes.push_back(recipe_for(tape_, access_maps_, unit, value,
                                   [&](ValueId input) -> bool { return held_[input]; }));
      inputs.insert(inputs.end(), recipes.back().inputs.begin(), recipes.back().inputs.end());
      saved += tape_.bytes(value);
    }
    std::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    Bytes taken = 0;
    for (const ValueId input : inputs) {
      if (!held_[input]) taken += tape_.bytes(input);
    }
    if (taken <= saved && fit(recipes)) {
      for (const Recipe& recipe : recipes) {
        for (const std::uint32_t reader : readers_[recipe.value]) {
          if (is_backward(units_[reader])) add_clones(recipe, units_[reader]);
        }
      }
      for (const ValueId input : inputs) held_[input] = true;
    } else {
      for (const Recipe& recipe : recipes) held_[recipe.value] = true;
    }
  }

  bool is_read_in_backward(ValueId value) const {
    return std::any_of(readers_[value].begin(), readers_[value].end(),
                       [&](std::uint32_t reader) { return is_backward(units_[reader]); });
  }

  bool fit(const std::vector<Recipe>& recipes) const {
    std::size_t nodes = 0;
    for (const Recipe& recipe : recipes) {
      if (recipe.nodes.size() > most_cloned_nodes) return false;
      nodes += recipe.nodes.size();
    }
    for (const Recipe& recipe : recipes) {
      for (const std::uint32_t reader : readers_[recipe.value]) {
        const Unit& unit = units_[reader];
        if (unit.own.size() + unit.duplicates.size() + nodes > most_members_with_clones)
          return false;
      }
    }
    return true;
  }

  static void add_clones(const Recipe& recipe, Unit& unit) {
    std::vector<NodeId> nodes = recipe.nodes;
    std::sort(nodes.begin(), nodes.end());
    std::vector<NodeId> all;
    std::set_union(nodes.begin(), nodes.end(), unit.duplicates.begin(), unit.duplicates.end(),
                   std::back_inserter(all));
    unit.duplicates = std::move(all);
  }

  const Tape& tape_;
  const AccessMaps& access_maps_;
  NodeId boundary_;
  std::vector<bool> held_;  // by value
  Units& units_;
  std::vector<std::vector<std::uint32_t>> readers_;  // by value: groups that read it in order
  std::vector<bool> in_memory_;                      // by value
};

}  // namespace

void duplicate_producers(const Tape& tape, const AccessMaps& access_maps, NodeId boundary,
                         const std::vector<bool>& held, Units& units) {
  Cloning cloning(tape, access_maps, boundary, held, units);
  cloning.clone_trivial();
  cloning.clone_into_backward();
}

}  // namespace palimpsest
