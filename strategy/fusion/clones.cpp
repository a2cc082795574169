#include "strategy/fusion/clones.h"

#include <algorithm>
#include <iterator>

namespace palimpsest {
namespace {

/// A value of a forward group is made again by no more nodes than that.
constexpr std::size_t most_nodes = 16;
/// Of a group, with those it makes again.
constexpr std::size_t most_members = 48;

class Cloning {
 public:
  Cloning(const Tape& tape, const Readings& readings, NodeId boundary, std::vector<bool> held,
          Units& units)
      : tape_(tape),
        readings_(readings),
        boundary_(boundary),
        held_(std::move(held)),
        units_(units),
        readers_(tape.value_count()) {}

  void run() {
    for (std::uint32_t unit = 0; unit < units_.size(); ++unit) {
      if (units_[unit][0] >= boundary_) note_reads(unit);
    }
    for (std::size_t unit = units_.size(); unit-- > 0;) {
      const std::vector<NodeId>& members = units_[unit];
      if (members[0] < boundary_ && members.back() < boundary_ && is_group(members)) {
        decide(members);
      }
    }
  }

 private:
  bool is_group(const std::vector<NodeId>& members) const {
    return readings_.is_pointwise(members[0]) && !tape_.inputs(members[0]).empty();
  }

  /// What units of the backward part read: in order and by groups, or else in memory.
  void note_reads(std::uint32_t unit) {
    for (const NodeId member : units_[unit]) {
      for (std::size_t i = 0; i < tape_.inputs(member).size(); ++i) {
        if (!readings_.is_pointwise(member)) {
          held_[tape_.inputs(member)[i]] = true;
          continue;
        }
        const Reading reading = readings_.of(member, i);
        for (const ReadPart& part : reading.parts) {
          if (part.value == none || readings_.is_number(part.value)) continue;
          const NodeId producer = tape_.producer(part.value);
          if (reading.in_order && producer < boundary_ && readings_.is_pointwise(producer)) {
            readers_[part.value].push_back(unit);
          } else {
            held_[part.value] = true;
          }
        }
      }
    }
  }

  /// What makes a value of a group again from what others make, or is held.
  struct Recipe {
    ValueId value;
    std::vector<NodeId> nodes;
    std::vector<ValueId> inputs;
  };

  Recipe recipe_for(ValueId value, const std::vector<NodeId>& members) const {
    Recipe recipe{value, {}, {}};
    std::vector<NodeId> open{tape_.producer(value)};
    while (!open.empty()) {
      // The latest first: what it reads lies before it.
      const auto latest = std::max_element(open.begin(), open.end());
      const NodeId node = *latest;
      open.erase(latest);
      recipe.nodes.push_back(node);
      for (std::size_t i = 0; i < tape_.inputs(node).size(); ++i) {
        for (const ReadPart& part : readings_.of(node, i).parts) {
          if (part.value == none || readings_.is_number(part.value)) continue;
          const NodeId producer = tape_.producer(part.value);
          const bool own = std::binary_search(members.begin(), members.end(), producer);
          if (!own || held_[part.value]) {
            recipe.inputs.push_back(part.value);
          } else if (std::find(open.begin(), open.end(), producer) == open.end()) {
            open.push_back(producer);
          }
        }
      }
    }
    return recipe;
  }

  void decide(const std::vector<NodeId>& members) {
    std::vector<Recipe> recipes;
    Bytes saved = 0;
    std::vector<ValueId> inputs;
    bool small = true;
    for (const NodeId member : members) {
      const ValueId value = tape_.first_output(member);
      if (readers_[value].empty() || held_[value]) continue;
      recipes.push_back(recipe_for(value, members));
      saved += tape_.bytes(value);
      small = small && recipes.back().nodes.size() <= most_nodes;
      inputs.insert(inputs.end(), recipes.back().inputs.begin(), recipes.back().inputs.end());
    }
    std::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    Bytes taken = 0;
    for (const ValueId input : inputs) {
      if (!held_[input]) taken += tape_.bytes(input);
    }
    if (small && taken <= saved && fits(recipes)) {
      for (const Recipe& recipe : recipes) {
        for (const std::uint32_t reader : readers_[recipe.value]) add(recipe.nodes, units_[reader]);
      }
      for (const ValueId input : inputs) held_[input] = true;
    } else {
      for (const Recipe& recipe : recipes) held_[recipe.value] = true;
    }
  }

  bool fits(const std::vector<Recipe>& recipes) const {
    for (const Recipe& recipe : recipes) {
      for (const std::uint32_t reader : readers_[recipe.value]) {
        std::size_t nodes = units_[reader].size();
        for (const Recipe& other : recipes) nodes += other.nodes.size();
        if (nodes > most_members) return false;
      }
    }
    return true;
  }

  static void add(std::vector<NodeId> nodes, std::vector<NodeId>& members) {
    std::sort(nodes.begin(), nodes.end());
    std::vector<NodeId> all;
    std::set_union(nodes.begin(), nodes.end(), members.begin(), members.end(),
                   std::back_inserter(all));
    members = std::move(all);
  }

  const Tape& tape_;
  const Readings& readings_;
  NodeId boundary_;
  std::vector<bool> held_;  // by value: in memory while the backward part runs
  Units& units_;
  std::vector<std::vector<std::uint32_t>> readers_;  // by value: backward groups, in order
};

}  // namespace

void clone_into_backward(const Tape& tape, const Readings& readings, NodeId boundary,
                         std::vector<bool> held, Units& units) {
  Cloning(tape, readings, boundary, std::move(held), units).run();
}

}  // namespace palimpsest
