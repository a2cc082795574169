#include "strategy/base/allocation_policy.h"

#include <array>

namespace palimpsest {

std::string_view name_of(AllocationPolicy handling) {
  static constexpr std::array<std::string_view, 4> names{"minimal_peak", "pooled", "standard",
                                                         "cached"};
  return names[static_cast<std::size_t>(handling)];
}

}  // namespace palimpsest
