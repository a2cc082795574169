#pragma once

#include <cstddef>

#include "checkpoint/chains/chain.h"

namespace palimpsest {

/// The dynamic programme behind `OptimalChain`, whose documentation says what it computes.
class ChainTable {
 public:
  enum class Rounding { up, down };

  /// One way to begin with stages s … t.
  struct Choice {
    bool record;          ///< runs stage s by its record `index`; else passes over s … index − 1
    std::uint32_t index;  ///< of the record, or the stage k to continue from
    double extra;         ///< seconds beyond one pass
    Bytes peak;           ///< of the operations, including the gradient of t's output
    Bytes held;           ///< while the rest (s + 1 … t, or k … t) runs
  };

  /// Memory is counted in up to `slots` slots of `slot` bytes.
  ChainTable(std::vector<ChainStage> stages, Bytes slot, std::size_t slots, Rounding rounding);

  /// The choices for stages s … t, those that record first.
  void list_choices(std::size_t s, std::size_t t, std::vector<Choice>& choices) const;
  /// Least seconds beyond one pass for stages s … t within `bytes`; infinite when those are too
  /// few. An upper bound when sizes are rounded up, so a plan exists; a lower bound when they are
  /// rounded down.
  float least(std::size_t s, std::size_t t, Bytes bytes) const;
  /// Least seconds when it begins with `choice`, without checking the choice's own peak.
  double least(std::size_t s, std::size_t t, Bytes bytes, const Choice& choice) const;
  /// The smallest memory for stages s … t, exactly.
  Bytes smallest(std::size_t s, std::size_t t) const { return cells_[cell(s, t)].smallest; }
  /// Memory with which nothing need be recomputed.
  Bytes largest(std::size_t s, std::size_t t) const { return cells_[cell(s, t)].largest; }

 private:
  struct Cell {
    Bytes smallest = unreachable;
    Bytes largest = unreachable;
    std::size_t first = 0;  ///< slots of the smallest
    std::size_t last = 0;   ///< slots of the largest; 0 seconds from there on
    float* row = nullptr;   ///< the seconds from `first` to `last`
    float at_smallest = 0;  ///< seconds at the smallest memory

    /// Seconds with so many slots, at least `first`.
    float at(std::size_t slots) const { return slots < last ? row[slots - first] : 0.0f; }
  };
  static constexpr Bytes unreachable = INT64_MAX / 4;

  static std::size_t cell(std::size_t s, std::size_t t) { return t * (t + 1) / 2 + s; }
  std::size_t slots(Bytes bytes) const;
  Bytes smallest_with(std::size_t s, std::size_t t, const Choice& choice) const;
  void find_ends();
  void relax(std::size_t s, std::size_t t, const Choice& choice);
  void finish(std::size_t s, std::size_t t, std::span<const Choice> choices);

  std::vector<ChainStage> stages_;
  Bytes slot_;
  std::size_t width_;  ///< slots plus one
  Rounding rounding_;
  std::vector<Cell> cells_;
  std::vector<std::vector<float>> columns_;  ///< by t, the rows
};

/// Seconds of the fastest record of `stage`, including its backward pass.
double fastest_record(const ChainStage& stage);

}  // namespace palimpsest
