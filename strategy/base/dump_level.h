#pragma once

#include <cstdint>

#include "autodiff/export.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// How much of a compilation is printed.
enum class DumpLevel : std::uint8_t {
  passes,        ///< a few lines for each pass
  plan,          ///< `passes`, and each step of the schedule
  instructions,  ///< `passes`, and each instruction with the places of its operands
  native,        ///< `passes`, and the C source of native code, when it is made for a run
  all,           ///< all of these
};

}  // namespace palimpsest
