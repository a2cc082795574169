#pragma once

#include <cstdint>

#include "autodiff/export.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// How much of a compilation is printed.
enum class DumpLevel : std::uint8_t {
  passes,        ///< a few lines for each pass
  plan,          ///< `passes`, and the schedule
  instructions,  ///< `passes`, and each instruction with the places of its operands
  all,           ///< everything
};

}  // namespace palimpsest
