#pragma once

#include <array>
#include <utility>
#include <vector>

#include "checkpoint/planners/live_sets.h"

namespace palimpsest {

/// A lower bound on the recomputation that a budget forces.
///
/// At each node that has to run, values that are read later may be too many to stay; those that go
/// run again. That is the bound of checkpoint/lower_bound.h, with only the storages' own seconds
/// counted, so that the minimum cut becomes a knapsack, whose relaxation is solved. The knapsacks
/// of several nodes are then added up: a storage that is read between two of them is made again
/// after each, and where one run may serve both, its seconds are shared out among them.
class ExtraCost {
 public:
  ExtraCost(const LiveSets& sets, Bytes budget);

  /// Seconds that any way from `live` to the targets takes beyond the cost of `rest`, which is what
  /// `find_rest` says of `live`; infinity when there is certainly none.
  double least(LiveSets::Set live, const LiveSets::Rest& rest);

 private:
  using Set = LiveSets::Set;
  /// Indices in `rest.nodes`, or of storages, by bit.
  using Mask = std::uint64_t;
  /// What certainly runs before and after the first run of a node that has to run.
  struct Around {
    Mask after, before;
    Set read_after, made_after, made_before;
  };
  /// A node at which storages have to go.
  struct Narrow {
    std::uint32_t index;
    Mask storages;  ///< that may go
    Bytes over;     ///< bytes of them that have to
    double seconds;
  };
  /// The part of a storage's seconds that one knapsack may count.
  struct Item {
    std::uint32_t storage;
    double seconds;
    double bytes;
  };
  using Charges = std::array<double, LiveSets::most_values>;

  void find_around(Set live, const LiveSets::Rest& rest);
  /// False when a node does not fit.
  bool find_narrow(const LiveSets::Rest& rest);
  /// Values read between the first runs of two nodes, whichever is first.
  Set read_between(std::uint32_t a, std::uint32_t b, const LiveSets::Rest& rest) const;
  /// The seconds of each storage at a node that none so far counts.
  void find_items(const Narrow& narrow, const LiveSets::Rest& rest);
  /// The least seconds that free the bytes, and how much of each storage's these need.
  double solve(Bytes over, Charges& charges);

  const LiveSets& sets_;
  Bytes budget_;
  std::array<Around, LiveSets::most_values> around_;        // by index in `rest.nodes`
  std::array<std::uint32_t, LiveSets::most_values> index_;  // in `rest.nodes`, by node
  std::vector<Narrow> narrow_;
  std::vector<std::pair<const Narrow*, Charges>> counted_;
  std::vector<Item> items_;
};

}  // namespace palimpsest
