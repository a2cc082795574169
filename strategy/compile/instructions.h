#pragma once

#include <memory>
#include <span>
#include <vector>

#include "checkpoint/dependencies.h"
#include "checkpoint/plan.h"
#include "strategy/compile/fusion/lowered.h"

namespace palimpsest {

/// A plan as a flat list of what is done: of each step, all that does not change from run to run.
/// Immutable; many executors may share it.
class Instructions {
 public:
  /// Where an operand lies: an interval of the layout, or a source.
  using Place = std::uint32_t;

  struct Instruction {
    /// Null where nothing is computed: a drop or a view. A user's may be gone.
    const Operation* operation = nullptr;
    const Attributes* given = nullptr;   ///< to the operation; null: what the tape holds
    const FusedKernel* group = nullptr;  ///< what is computed instead, of a group
    NodeId unit = none;                  ///< of the planned graph
    NodeId node = none;                  ///< as `Lowered::node`
    std::uint32_t first_operand = 0;     ///< inputs, then outputs
    std::uint32_t inputs = 0;
    std::uint32_t outputs = 0;
    std::uint32_t workspace = none;      ///< interval
    std::uint32_t closed = none;         ///< interval that a drop closes
    std::uint32_t first_number = 0;      ///< of the group's, among those of all
    bool accumulates = false;            ///< the last input is added to what the operation makes
    const Epilogue* epilogue = nullptr;  ///< what the operation carries out
    bool is_of_user = false;             ///< a user's operation, which is that of the tape
    bool is_long = false;                ///< worth handing to another thread
  };

  /// `plan` is one for `lowered`, and that of `tape`.
  Instructions(const Tape& tape, std::shared_ptr<const Lowered> lowered, const Plan& plan);

  const Lowered& lowered() const { return *lowered_; }
  const Dependencies& dependencies() const { return dependencies_; }
  /// By step.
  std::span<const Instruction> steps() const { return steps_; }
  /// True when some step is worth handing to another thread.
  bool any_long() const { return any_long_; }

  /// The operands of all instructions: their types, and where they lie.
  std::span<const Operand> operands() const { return operands_; }
  std::span<const Place> places() const { return places_; }

  /// How many numbers the groups of all instructions have.
  std::uint32_t number_count() const { return number_count_; }

  std::span<const Interval> intervals() const { return intervals_; }
  /// How many of them, the first ones, are open from the start.
  std::uint32_t open_at_start() const { return open_at_start_; }
  /// Bytes of those.
  Bytes present_bytes() const { return present_bytes_; }
  /// Values of the tape that are supplied, and read or asked for, and those that are made
  /// elsewhere; their places follow those of intervals. After them comes the place of what has no
  /// bytes.
  std::span<const ValueId> sources() const { return sources_; }
  Place source_place(std::size_t source) const {
    return static_cast<Place>(intervals_.size() + source);
  }
  Place empty_place() const { return source_place(sources_.size()); }
  std::size_t place_count() const { return empty_place() + 1; }

  /// A value of the tape, and where it lies.
  struct Held {
    ValueId value;
    Place place;
    std::uint32_t before;  ///< the first in the list that lies there too, or itself
  };
  /// What is present at the start, sources aside.
  std::span<const Held> present() const { return present_; }
  /// What was asked for, at the end.
  std::span<const Held> results() const { return results_; }
  bool is_source(Place place) const { return place >= intervals_.size() && place < empty_place(); }
  /// Approximate bytes of this object.
  Bytes metadata_bytes() const;
  /// Bytes of the arena.
  Bytes arena_size() const { return arena_size_; }

 private:
  class Builder;

  std::shared_ptr<const Lowered> lowered_;
  Dependencies dependencies_;
  std::vector<Instruction> steps_;
  std::vector<Operand> operands_;
  std::vector<Place> places_;
  std::vector<Interval> intervals_;
  std::vector<ValueId> sources_;
  std::vector<Held> present_;
  std::vector<Held> results_;
  std::uint32_t number_count_ = 0;
  std::uint32_t open_at_start_ = 0;
  Bytes present_bytes_ = 0;
  Bytes arena_size_ = 0;
  bool any_long_ = false;
};

}  // namespace palimpsest
