#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace palimpsest {

/// Addresses of a row of runs, by which each of them is given other memory. From a run to the one
/// after the next, each address moves by the same distance. This holds for tensors that lie in a
/// row, and for two blocks that are used in turns.
class AddressRow {
 public:
  /// `set(i)` sets the addresses of run i in `places`. It is called for the first three runs.
  template <class Set>
  void learn(std::span<std::byte** const> places, const Set& set) {
    changing_.clear();
    is_odd_ = false;
    set(0);
    for (std::byte** const place : places) changing_.push_back({place, {*place, nullptr}, 0});
    set(1);
    for (Changing& each : changing_) each.next[1] = *each.place;
    set(2);
    for (Changing& each : changing_) each.distance = *each.place - each.next[0];
    std::erase_if(changing_, [](const Changing& each) {
      return each.next[0] == each.next[1] && each.distance == 0;
    });
  }
  /// Sets the addresses of the next run; after `learn`, those of the first one.
  void next() {
    for (Changing& each : changing_) {
      std::byte*& address = each.next[is_odd_ ? 1 : 0];
      *each.place = address;
      address += each.distance;
    }
    is_odd_ = !is_odd_;
  }

 private:
  struct Changing {
    std::byte** place;
    std::byte* next[2];  // of the next run that is even, and of the next one that is odd
    std::ptrdiff_t distance;
  };
  std::vector<Changing> changing_;
  bool is_odd_ = false;  // the next run
};

}  // namespace palimpsest
