#pragma once

#include <cstdint>
#include <string_view>

namespace palimpsest {

/// Where the values of a planned run lie; what an eager tape computes while it is recorded has
/// storage from the system. The same bits, and never more bytes than predicted.
enum class MemoryHandling : std::uint8_t {
  minimal_peak,  ///< in one block that is laid out with the plan, and kept for the next run
  pooled,        ///< each in storage of its own that, when it dies, is handed on to one of its size
  standard,      ///< each in storage of its own, from and to the system: where memory tools look
  /// As `minimal_peak`; and what depends on leaves alone that have the contents that they had in
  /// the run before, by a hash of 128 bits, is not computed again where something that changed
  /// reads it, or it was asked for. Copies of these results are kept from the second run on, within
  /// the budget. Tapes are compared node by node with the one run before by the same engine: this
  /// is for programs that are recorded alike and run as a whole. Of replicas each has its own
  /// results; micro-batches find those of the one before.
  cached,
};
std::string_view name_of(MemoryHandling handling);

}  // namespace palimpsest
