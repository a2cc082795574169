#pragma once

#include <string>

#include "autodiff/export.h"
#include "strategy/explain/explanation.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// The answers of an explanation as text of at most about 60 lines. Plans within a few other
/// budgets, which takes as long as planning does.
std::string explain(const Explanation& explanation);

}  // namespace palimpsest
