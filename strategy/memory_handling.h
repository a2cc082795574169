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
};
std::string_view name_of(MemoryHandling handling);

}  // namespace palimpsest
