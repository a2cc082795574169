#pragma once

#include "tests/catch.h"
#include "tests/strategy/export/exported_runs.h"

namespace palimpsest {

/// Warns that a test does nothing, because there is no C compiler.
inline bool lacks_c_compiler() {
  if (!c_compiler().empty()) return false;
  WARN("skipped: there is no C compiler");
  return true;
}

}  // namespace palimpsest
