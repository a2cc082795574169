#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "checkpoint/graph.h"

namespace palimpsest {

/// Storages that could be evicted, ordered by price / (now − last use). This order changes with
/// time, for all of them at once.
///
/// Storages whose prices lie within a factor of 2^¼ form a band. Within a band the least recently
/// used one comes first at any time. `least` compares the first storages of the bands, so its
/// result is within that factor of the true minimum. `put` and `erase` take O(log n). `least` takes
/// time proportional to the number of occupied bands: four for every doubling between the lowest
/// and the highest price.
class EvictionQueue {
 public:
  /// Inserts a storage, or moves it. Its price is not negative.
  void put(ValueId root, double price, double last_use);
  /// Removes a storage if it is present.
  void erase(ValueId root);
  /// The storage to evict first; `none` when the queue is empty. `now` must not be before any last
  /// use.
  ValueId least(double now) const;

  bool empty() const { return bands_.empty(); }
  bool contains(ValueId root) const { return root < places_.size() && places_[root].present; }
  /// The price of a storage in the queue.
  double price(ValueId root) const { return places_[root].price; }

 private:
  struct Place {
    bool present = false;
    int band = 0;
    double price = 0;
    double last_use = 0;
  };

  std::map<int, std::set<std::pair<double, ValueId>>> bands_;  // no empty bands
  std::vector<Place> places_;                                  // by root
};

}  // namespace palimpsest
