#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "checkpoint/graph.h"

namespace palimpsest {

/// Storages that could be given up, in the order of price / (now − last use), which time changes
/// for all of them at once.
///
/// Storages whose prices lie within a factor of 2^¼ make a band. In a band the one used longest ago
/// stands first, whatever the time, so the least of all is within that factor of the least of what
/// stands first in the bands. Putting and erasing take O(log n); so does finding, and time
/// proportional to the bands occupied: four for every doubling between the lowest price and the
/// highest.
class EvictionQueue {
 public:
  /// Puts a storage in, or moves it. Its price is not negative.
  void put(ValueId root, double price, double last_use);
  /// Takes a storage out if it is there.
  void erase(ValueId root);
  /// The storage to give up first, `none` when there is none. Not before any last use.
  ValueId least(double now) const;

  bool empty() const { return bands_.empty(); }
  bool contains(ValueId root) const { return root < places_.size() && places_[root].present; }
  /// The price of a storage in it.
  double price(ValueId root) const { return places_[root].price; }

 private:
  struct Place {
    bool present = false;
    int band = 0;
    double price = 0;
    double last_use = 0;
  };

  std::map<int, std::set<std::pair<double, ValueId>>> bands_;  // none of them empty
  std::vector<Place> places_;                                  // by root
};

}  // namespace palimpsest
