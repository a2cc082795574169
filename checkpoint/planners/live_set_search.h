#pragma once

#include <optional>
#include <vector>

#include "checkpoint/planners/extra_cost.h"
#include "checkpoint/planners/live_sets.h"

namespace palimpsest {

/// A* over sets of live values, in any order of nodes.
///
/// A step computes a node, whose inputs are live, and first drops a least set of storages that
/// makes room for it: other drops can wait until they are needed, so nothing is lost. Values
/// nothing can make use of are left out of the sets at once, nodes that cost nothing and take
/// nothing are run as soon as they can be, and a set is passed over when one that holds a value
/// more was reached at no higher cost. The cost to go is bounded by what has to run and by
/// `ExtraCost`.
class LiveSetSearch {
 public:
  /// `most_sets` bounds the sets a search may hold, and with them its time; `ran_out` tells when it
  /// gave up.
  LiveSetSearch(const LiveSets& sets, Bytes budget, std::size_t most_sets);

  struct Found {
    std::vector<NodeId> order;
    double cost = 0;
  };
  /// An order that fits, whatever it costs; nothing when there is none or the search gave up.
  std::optional<Found> find_any();
  /// Goes on with the search (Hansen and Zhou, 2007) for an order that fits and costs less than all
  /// that it found so far; begins anew after `find_any`. Nothing when there is none, or when the
  /// search gave up, now or before. `patience`
  /// above 0 says how much the cost so far counts beside that to go: at 1 the order found is the
  /// cheapest, below that it is found sooner.
  std::optional<Found> find_cheaper(double patience);
  bool ran_out() const { return ran_out_; }
  std::size_t reached() const { return reached_.size(); }
  /// After `find_any` found that there is none: below a budget of so many bytes there is none
  /// either.
  Bytes next_budget() const { return budget_ + short_by_; }

 private:
  using Set = LiveSets::Set;
  struct Reached {
    Set live;
    Set bare;      ///< what of it is live before nodes that cost nothing are run
    double cost;   ///< so far
    double to_go;  ///< at least
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
  /// A drop to be decided on: storages before `next` have been.
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
  /// Runs nodes that cost nothing and add no bytes, as views do; true when there was one.
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

  // Of the search at hand.
  bool ran_out_ = false;
  std::int64_t drops_left_ = 0;  // some sets can be followed by millions
  Bytes short_by_ = 0;           // of anything else to do
  double patience_ = 0;
  double below_ = 0;  // what an order has to cost
  std::vector<Reached> reached_;
  std::vector<std::uint32_t> slots_;  // a hash table of ids
  std::vector<Open> open_;            // a heap
  LiveSets::Rest rest_;
  LiveSets::Rest next_rest_;
  LiveSets::Rest after_free_;
  std::vector<const LiveSets::Storage*> droppable_;
  std::vector<Bytes> freed_from_;  // by the droppable ones from here on
  std::vector<Drop> drops_;
};

}  // namespace palimpsest
