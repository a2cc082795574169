#pragma once

#include <span>
#include <utility>
#include <vector>

#include "autodiff/tape.h"
#include "checkpoint/meter.h"

namespace palimpsest {

/// Appends the present values, except leaves and the states of loops.
void append_present(const Tape& tape, std::vector<ValueId>& values);

/// Puts values back, on destruction, that were dropped since.
class [[nodiscard]] RestoredValues {
 public:
  RestoredValues(Tape& tape, std::span<const ValueId> values) : tape_(tape) {
    for (const ValueId value : values) buffers_.emplace_back(value, tape.buffer(value));
  }
  ~RestoredValues() {
    for (auto& [value, buffer] : buffers_) {
      if (!tape_.has_value(value)) tape_.set_buffer(value, std::move(buffer));
    }
  }
  RestoredValues(const RestoredValues&) = delete;
  RestoredValues& operator=(const RestoredValues&) = delete;

 private:
  Tape& tape_;
  std::vector<std::pair<ValueId, Buffer>> buffers_;
};

/// The bytes of their storage, without that of leaves.
Bytes bytes_present(const Tape& tape);

/// True if each of `some` is one of `values`.
bool are_among(std::span<const ValueId> some, std::span<const ValueId> values);

/// The nodes, in order, whose values are all present and also held outside the tape. They belong to
/// the user, as leaves do: dropping them would free nothing.
std::vector<NodeId> nodes_held_elsewhere(const Tape& tape);

/// Drops all present values except leaves. Storage that the user holds stays alive. Returns false
/// when there is nothing to drop.
bool let_go_of_present(Tape& tape);

/// Ensures that dropping a present value frees its bytes at `meter`, unless its node is among
/// `held`. Copies a value if its storage is also held elsewhere, lies in an arena, or was allocated
/// without the meter. All views of one value share one copy.
///
/// Likewise for values that are out of date.
///
/// Merged values, which share one storage without being views of one value, are separated. Within a
/// budget such copies might not fit, so all but one of these values are dropped instead. A value is
/// also dropped, and computed again if the run needs it, where its copy would exceed the budget in
/// addition to what the meter counts now.
void settle_present(Tape& tape, std::span<const NodeId> held, const Meter& meter, Bytes budget);

}  // namespace palimpsest
