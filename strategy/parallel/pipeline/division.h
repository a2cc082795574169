#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "autodiff/bytes.h"

namespace palimpsest {

/// A sequence cut into consecutive parts.
struct Division {
  std::vector<std::size_t> begins;  ///< the first element of each part
  double largest = 0;               ///< seconds of the slowest part
  Bytes crossing = 0;               ///< total bytes that cross the cuts

  bool operator==(const Division&) const = default;
};

/// Cuts a sequence into `parts` non-empty parts. Considers the divisions whose slowest part takes
/// at most 5 % more than the minimum. It returns one with the fewest crossing bytes; ties go to the
/// smallest slowest part. `crossing[i]` are the bytes that cross a cut before element i.
///
/// Exact, in O(parts · n · log n), repeated at most some 50 times. Throws `ArgumentError` for fewer
/// elements than parts.
Division divide(std::span<const double> seconds, std::span<const Bytes> crossing,
                std::size_t parts);

}  // namespace palimpsest
