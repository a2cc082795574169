#pragma once

#include <cstdint>
#include <random>
#include <string>

namespace palimpsest {

/// Changes the content of a file at random, one to three times. The changes depend on the seed
/// only.
class Mutations {
 public:
  explicit Mutations(std::uint64_t seed) : random_(seed) {}

  /// Flips, cuts off, removes, repeats or replaces bytes.
  std::string of_bytes(std::string content);
  /// Mutates like `of_bytes` or, most of the time, in ways that keep most of the JSON intact.
  /// Numbers become huge, negative, missing or other values. Members and elements are removed,
  /// repeated or swapped.
  std::string of_json(std::string content);

 private:
  std::size_t below(std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(random_() % n); }
  void change_bytes(std::string& content);
  void change_json(std::string& content);

  std::mt19937_64 random_;
};

/// The number of mutations that a test tries per format: some hundreds, and a hundred thousand in
/// `./dev check long`.
int mutations_wanted();

/// The largest allocation by `new` since `forget_allocations`, in bytes; 0 under a sanitizer.
std::size_t largest_allocation();
void forget_allocations();

}  // namespace palimpsest
