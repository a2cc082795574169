#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "checkpoint/dependencies.h"
#include "checkpoint/plan.h"
#include "strategy/compile/fusion/lowered.h"

namespace palimpsest {

/// A plan as a flat list of instructions, one per step. They hold everything that does not change
/// from run to run. Immutable; many executors may share it.
class Instructions {
 public:
  /// The location of an operand: an interval of the layout, or a source.
  using Place = std::uint32_t;

  struct Instruction {
    /// Null if nothing is computed: a drop or a view. May dangle for a user's operation.
    const Operation* operation = nullptr;
    const Attributes* given = nullptr;   ///< attributes for the operation; null: those on the tape
    const FusedKernel* group = nullptr;  ///< replaces the operation for a fused group
    NodeId unit = none;                  ///< of the planned graph
    NodeId node = none;                  ///< as `Lowered::node`
    std::uint32_t first_operand = 0;     ///< inputs, then outputs
    std::uint32_t inputs = 0;
    std::uint32_t outputs = 0;
    std::uint32_t workspace = none;      ///< interval
    std::uint32_t closed = none;         ///< interval that a drop closes
    std::uint32_t first_number = 0;      ///< of the group, among the numbers of all groups
    bool accumulates = false;            ///< the last input is added to the operation's result
    const Epilogue* epilogue = nullptr;  ///< epilogue that the operation executes
    bool is_of_user = false;             ///< a user's operation; taken from the tape
    bool is_long = false;                ///< worth handing to another thread
  };

  /// `plan` must be a plan for `lowered`, and `lowered` the lowered form of `tape`.
  Instructions(const Tape& tape, std::shared_ptr<const Lowered> lowered, const Plan& plan);

  const Lowered& lowered() const { return *lowered_; }
  const Dependencies& dependencies() const { return dependencies_; }
  /// By step.
  std::span<const Instruction> steps() const { return steps_; }
  /// True when some step is worth handing to another thread.
  bool any_long() const { return any_long_; }
  /// True when no step is worth a second thread: none is long or a user's operation, and none has
  /// so many elements that a kernel divides them.
  bool is_serial() const { return is_serial_; }

  /// The operands of all instructions, and their places.
  std::span<const Operand> operands() const { return operands_; }
  std::span<const Place> places() const { return places_; }

  /// Number of scalar constants in all fused groups.
  std::uint32_t number_count() const { return number_count_; }

  std::span<const Interval> intervals() const { return intervals_; }
  /// Number of intervals that are open from the start. They come first.
  std::uint32_t open_at_start() const { return open_at_start_; }
  /// Bytes of the intervals that are open from the start.
  Bytes present_bytes() const { return present_bytes_; }
  /// Values of the tape that lie outside the layout: supplied values that are read or requested,
  /// and values made elsewhere. Their places follow those of the intervals. The last place is for
  /// values without bytes.
  std::span<const ValueId> sources() const { return sources_; }
  Place source_place(std::size_t source) const {
    return static_cast<Place>(intervals_.size() + source);
  }
  Place empty_place() const { return source_place(sources_.size()); }
  std::size_t place_count() const { return empty_place() + 1; }

  /// A value of the tape, and its place.
  struct Held {
    ValueId value;
    Place place;
    std::uint32_t before;  ///< index of the first value in the list with this place
  };
  /// The values present at the start, except sources.
  std::span<const Held> present() const { return present_; }
  /// The requested values, at the end of a run.
  std::span<const Held> results() const { return results_; }
  bool is_source(Place place) const { return place >= intervals_.size() && place < empty_place(); }
  /// What a later stage keeps with the instructions, such as native code.
  struct Attachment {
    virtual ~Attachment() = default;
  };
  /// The attachment; `make` makes it on first use. Thread-safe.
  std::shared_ptr<Attachment> attachment(
      const std::function<std::shared_ptr<Attachment>()>& make) const;

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
  bool is_serial_ = false;
  mutable std::mutex attachment_mutex_;
  mutable std::shared_ptr<Attachment> attachment_;
};

}  // namespace palimpsest
