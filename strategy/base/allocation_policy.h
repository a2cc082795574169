#pragma once

#include <cstdint>
#include <string_view>

#include "autodiff/export.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Where the values of a planned run are stored. It does not affect bits, and never takes more
/// bytes than predicted. An eager tape stores what it computes while recording in memory from the
/// system.
enum class AllocationPolicy : std::uint8_t {
  minimal_peak,  ///< in one arena that is laid out with the plan, and kept for the next run
  pooled,        ///< each in its own storage; dead storage is reused for values of the same size
  standard,      ///< each in its own storage, from and to the system, where memory tools see it
  /// As `minimal_peak`, and caches results from run to run. It reuses results that depend only on
  /// leaves whose contents have not changed since the previous run, according to a 128-bit hash. It
  /// does so where something that changed reads a result, or where it was requested. They are kept
  /// from the second run on. A step with gradients that keeps results takes no more than the first.
  ///
  /// Each tape is compared node by node with the one that the same engine ran before. So this is
  /// for programs that are recorded in the same way and run as a whole. Each replica has its own
  /// results; a micro-batch finds those of the previous one.
  cached,
};
/// The name in JSON, such as `minimal_peak`.
std::string_view name_of(AllocationPolicy handling);

}  // namespace palimpsest
