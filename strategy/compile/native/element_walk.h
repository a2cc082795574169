#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "autodiff/operations/strided.h"

namespace palimpsest {

/// A range of elements of a fused group, or a range that is repeated. It says where loads read
/// while machine code walks through the elements in order.
struct ElementRange {
  /// Where one load reads the elements of a range.
  struct Access {
    std::uint32_t part;                    ///< identifies what is read: an array or a constant
    std::int64_t offset;                   ///< of the first element, in elements
    std::int64_t step;                     ///< from element to element
    std::vector<std::int64_t> moves = {};  ///< of `offset` in each repetition, from the innermost
  };
  std::int64_t count = 0;             ///< elements, or repetitions of `body`
  std::vector<Access> accesses = {};  ///< by load; empty for a repeated range
  std::vector<ElementRange> body = {};

  bool is_repeated() const { return !body.empty(); }
  /// Number of elements, with repetitions.
  std::int64_t elements() const;
};

/// A range of elements [begin, end) that a load reads through an access map.
struct LoadedPart {
  std::int64_t begin;
  std::int64_t end;
  std::uint32_t part;  ///< as in `Access`
  const Gather* from;  ///< null for a constant
  /// The parts of a load repeat after so many elements, further on in what they read. 0: they do
  /// not.
  std::int64_t period = 0;
};

/// The first `n` elements of a range without repetitions. The range keeps the rest.
ElementRange take_front(ElementRange& range, std::int64_t n);

/// Nested ranges that together walk elements [0, n), in which each load reads with one step.
/// `loads` has the parts of each load, in order. `periods` are lengths of rows, planes and so on,
/// at which repetitions are looked for. Empty if there are too many ranges to be worth code.
std::optional<std::vector<ElementRange>> element_walk(
    std::span<const std::vector<LoadedPart>> loads, std::int64_t n,
    std::span<const std::int64_t> periods);

}  // namespace palimpsest
