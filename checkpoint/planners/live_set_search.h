#pragma once

#include <optional>
#include <vector>

#include "checkpoint/planners/extra_cost.h"
#include "checkpoint/planners/live_sets.h"

namespace palimpsest {

/// A* over sets of live values, in any order of nodes.
///
/// A step computes a node whose inputs are live. It first drops a minimal set of storages that
/// makes room for the node. Other drops can wait until they are needed, so nothing is lost. Three
/// rules reduce the sets:
///
/// - Values that are of no further use are left out at once.
/// - Nodes that cost nothing and take no bytes are run as soon as possible.
/// - A set is dominated when a set with one more value was reached at no higher cost.
///
/// The cost to go is bounded by the nodes that have to run and by `ExtraCost`.
class LiveSetSearch {
 public:
  /// `most_sets` bounds the number of sets a search may hold, and so its time. `ran_out` tells
  /// whether it gave up.
  LiveSetSearch(const LiveSets& sets, Bytes budget, std::size_t most_sets);

  struct Found {
    std::vector<NodeId> order;
    double cost = 0;
  };
  /// An order that fits, at any cost. Nothing when there is none or the search gave up.
  std::optional<Found> find_any();
  /// Anytime search (Hansen and Zhou, 2007): continues for an order that fits and costs less than
  /// all found so far. Starts anew after `find_any`. Returns nothing when there is none, or when
  /// the search gave up, now or before. `patience` above 0 weighs the cost so far relative to the
  /// cost to go. At 1 the order found is the cheapest; below 1 it is found sooner.
  std::optional<Found> find_cheaper(double patience);
  bool ran_out() const { return ran_out_; }
  std::size_t reached() const { return reached_.size(); }
  /// After `find_any` proved that there is no order: no smaller budget than this has one either.
  Bytes next_budget() const { return budget_ + short_by_; }

 private:
  using Set = LiveSets::Set;
  struct Reached {
    Set live;
    Set bare;      ///< its values that are live before nodes of no cost are run
    double cost;   ///< so far
    double to_go;  ///< a lower bound
    std::uint32_t from;
    std::uint32_t node;
    bool done;
  };
  struct Open {
    double key;
    double to_go;
    std::uint32_t id;
    bool operator<(const Open& other) const {
      return key > other.key || (key == other.key && to_go > other.to_go);
    }
  };
  /// A partial choice of drops: storages before `next` have been decided.
  struct Drop {
    std::size_t next;
    Bytes freed;
    Set dropped;
  };

  void begin(double patience);
  std::optional<Found> go_on();
  void expand(std::uint32_t id);
  template <class MayDrop, class Use>
  void drop_least(Bytes over, MayDrop may_drop, Use use);
  void reach(Set live, const LiveSets::Need& need, double cost, std::uint32_t from,
             std::uint32_t node);
  /// Runs nodes that cost nothing and add no bytes, such as views. True when there was one.
  bool add_free(Set& live, std::vector<NodeId>* order) const;
  void push(std::uint32_t id);
  bool is_dominated(const Reached& reached) const;
  std::size_t slot_of(Set live) const;
  void grow();
  Found path_to(std::uint32_t id) const;

  const LiveSets& sets_;
  Bytes budget_;
  std::size_t most_sets_;
  ExtraCost extra_;

  // State of the current search.
  bool ran_out_ = false;
  std::int64_t drops_left_ = 0;  // some sets have millions of successors
  Bytes short_by_ = 0;           // bytes missing for any other step
  double patience_ = 0;
  double below_ = 0;  // an order must cost less than this
  std::vector<Reached> reached_;
  std::vector<std::uint32_t> slots_;  // a hash table of ids
  std::vector<Open> open_;            // a heap
  LiveSets::Rest rest_;
  LiveSets::Rest next_rest_;
  LiveSets::Rest after_free_;
  std::vector<const LiveSets::Storage*> droppable_;
  std::vector<Bytes> freed_from_;  // bytes of all droppable storages from each index on
  std::vector<Drop> drops_;
};

}  // namespace palimpsest
