#pragma once

#include <cstddef>
#include <cstdint>
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
    runs_ = 0;
    set(0);
    for (std::byte** const place : places) changing_.push_back({place, {*place, nullptr}, 0});
    set(1);
    for (Changing& each : changing_) each.addresses[1] = *each.place;
    set(2);
    for (Changing& each : changing_) each.distance = *each.place - each.addresses[0];
    std::erase_if(changing_, [](const Changing& each) {
      return each.addresses[0] == each.addresses[1] && each.distance == 0;
    });
  }
  /// Sets the addresses of the next run; after `learn`, those of the first one.
  void next() {
    const bool is_learned = runs_ < 2;
    for (Changing& each : changing_) {
      std::byte*& address = each.addresses[runs_ % 2];
      if (!is_learned) address += each.distance;
      *each.place = address;
    }
    ++runs_;
  }

 private:
  struct Changing {
    std::byte** place;
    std::byte* addresses[2];  // of the last run that was even, and of the last one that was odd
    std::ptrdiff_t distance;
  };
  std::vector<Changing> changing_;
  std::uint32_t runs_ = 0;
};

}  // namespace palimpsest
