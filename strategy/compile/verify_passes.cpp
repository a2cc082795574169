#include "strategy/compile/verify_passes.h"

#include <cstdlib>

namespace palimpsest {

bool is_set(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

bool verifies_passes() {
#ifdef NDEBUG
  static const bool asked = is_set("PALIMPSEST_VERIFY");
  return asked;
#else
  return true;
#endif
}

}  // namespace palimpsest
