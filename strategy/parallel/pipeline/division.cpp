#include "strategy/parallel/pipeline/division.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <deque>
#include <limits>
#include <string>

#include "autodiff/error.h"

namespace palimpsest {
namespace {

using Sums = std::vector<double>;  // prefix sums: seconds before each element, and in total

/// The minimum, over all divisions, of the slowest part's seconds.
double least_longest(const Sums& sums, std::size_t parts) {
  const std::size_t count = sums.size() - 1;
  // By prefix length: that minimum for the prefix, cut into as many parts as rounds so far.
  std::vector<double> longest(sums.begin(), sums.end());
  for (std::size_t part = 1; part < parts; ++part) {
    std::vector<double> next(count + 1, std::numeric_limits<double>::infinity());
    for (std::size_t end = part + 1; end <= count; ++end) {
      // As the last part begins later, the earlier parts take longer and the last one less: bisect.
      std::size_t low = part;
      std::size_t high = end - 1;
      while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        (longest[middle] >= sums[end] - sums[middle]) ? high = middle : low = middle + 1;
      }
      for (const std::size_t begin : {low, std::max(low, part + 1) - 1}) {
        next[end] = std::min(next[end], std::max(longest[begin], sums[end] - sums[begin]));
      }
    }
    longest = std::move(next);
  }
  return longest[count];
}

/// The division with the fewest crossing bytes whose parts take at most `most` seconds. There must
/// be one.
Division fewest_bytes(const Sums& sums, std::span<const Bytes> crossing, std::size_t parts,
                      double most) {
  const std::size_t count = sums.size() - 1;
  constexpr Bytes never = std::numeric_limits<Bytes>::max();
  std::vector<Bytes> bytes(count + 1, never);  // by prefix length, cut into `part` parts
  bytes[0] = 0;
  std::vector<std::vector<std::size_t>> begins(parts, std::vector<std::size_t>(count + 1));
  for (std::size_t part = 0; part < parts; ++part) {
    std::vector<Bytes> next(count + 1, never);
    std::deque<std::size_t> window;  // possible begins of the part, by increasing bytes
    for (std::size_t end = 1; end <= count; ++end) {
      const std::size_t begin = end - 1;
      const auto total = [&](std::size_t at) { return bytes[at] + (at > 0 ? crossing[at] : 0); };
      if (bytes[begin] != never) {
        while (!window.empty() && total(window.back()) > total(begin)) window.pop_back();
        window.push_back(begin);
      }
      while (!window.empty() && sums[end] - sums[window.front()] > most) window.pop_front();
      if (window.empty()) continue;
      next[end] = total(window.front());
      begins[part][end] = window.front();
    }
    bytes = std::move(next);
  }
  Division division{.begins = std::vector<std::size_t>(parts), .crossing = bytes[count]};
  std::size_t end = count;
  for (std::size_t part = parts; part-- > 0;) {
    const std::size_t begin = begins[part][end];
    division.begins[part] = begin;
    division.largest = std::max(division.largest, sums[end] - sums[begin]);
    end = begin;
  }
  return division;
}

}  // namespace

Division divide(std::span<const double> seconds, std::span<const Bytes> crossing,
                std::size_t parts) {
  if (parts == 0 || seconds.size() < parts) {
    throw ArgumentError("[pipeline] " + std::to_string(seconds.size()) +
                        " operations cannot be cut into " + std::to_string(parts) +
                        " stages; give at least one stage, and no more stages than operations");
  }
  Sums sums{0};
  for (const double each : seconds) sums.push_back(sums.back() + each);
  const double least = least_longest(sums, parts);
  constexpr double more = 1.05;
  Division best = fewest_bytes(sums, crossing, parts, more * least);
  // Non-negative numbers have the order of their bit patterns, so bisection is exact.
  auto low = std::bit_cast<std::uint64_t>(least);
  auto high = std::bit_cast<std::uint64_t>(best.largest);
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    Division other = fewest_bytes(sums, crossing, parts, std::bit_cast<double>(middle));
    if (other.crossing == best.crossing) {
      high = std::bit_cast<std::uint64_t>(other.largest);
      best = std::move(other);
    } else {
      low = middle + 1;
    }
  }
  return best;
}

}  // namespace palimpsest
