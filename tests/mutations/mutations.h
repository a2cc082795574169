#pragma once

#include <cstdint>
#include <random>
#include <string>

namespace palimpsest {

/// Changes a file's content at random, one to three times over; the same seed makes the same of it.
class Mutations {
 public:
  explicit Mutations(std::uint64_t seed) : random_(seed) {}

  /// Bytes flipped, cut off, left out, repeated and made others.
  std::string of_bytes(std::string content);
  /// That or, most of the time, changes that leave most of a JSON text what it is: numbers become
  /// huge, negative, none or other values, members and elements are left out, repeated or swapped.
  std::string of_json(std::string content);

 private:
  std::size_t below(std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(random_() % n); }
  void change_bytes(std::string& content);
  void change_json(std::string& content);

  std::mt19937_64 random_;
};

/// How many mutations a test tries of a format: some hundreds, and a hundred thousand in
/// `./dev check long`.
int mutations_wanted();

/// The largest allocation by `new` since `forget_allocations`, in bytes; 0 under a sanitizer.
std::size_t largest_allocation();
void forget_allocations();

}  // namespace palimpsest
