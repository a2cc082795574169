#include "strategy/training/parameter_groups.h"

#include <algorithm>
#include <utility>

#include "autodiff/error.h"

namespace palimpsest {

ParameterPredicate names_ending(std::vector<std::string> endings) {
  return [endings = std::move(endings)](const ParameterInfo& parameter) {
    return std::ranges::any_of(
        endings, [&](const std::string& ending) { return parameter.name.ends_with(ending); });
  };
}

ParameterPredicate axes_at_most(int axes) {
  if (axes < 0) {
    throw ArgumentError("[axes_at_most] the number of axes is " + std::to_string(axes) +
                        "; give 0 or more");
  }
  return [axes](const ParameterInfo& parameter) { return parameter.type.shape.rank() <= axes; };
}

}  // namespace palimpsest
