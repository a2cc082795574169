#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "autodiff/bytes.h"

namespace palimpsest {

/// A sequence cut into parts that follow each other.
struct Division {
  std::vector<std::size_t> begins;  ///< the first element of each part
  double largest = 0;               ///< seconds of the part that takes longest
  Bytes crossing = 0;               ///< bytes that cross the cuts, together

  bool operator==(const Division&) const = default;
};

/// Cuts a sequence into `parts` parts, none of them empty: of all divisions whose longest part
/// takes at most a twentieth more than it has to, one across whose cuts fewest bytes pass, and of
/// these one whose longest part takes least. `crossing[i]` are the bytes that pass a cut in front
/// of element i. Exact, in O(parts · n · log n), some 50 times at
/// most. Throws `ArgumentError` for fewer elements than parts.
Division divide(std::span<const double> seconds, std::span<const Bytes> crossing,
                std::size_t parts);

}  // namespace palimpsest
