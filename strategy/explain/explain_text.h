#pragma once

#include <string>
#include <vector>

#include "autodiff/export.h"
#include "strategy/explain/explanation.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// A fraction in per cent, as in `12.5 %`.
std::string percent(double fraction);

/// What other budgets would cost, and what determines the smallest one.
std::vector<std::string> sentences_of(const Explanation& explanation,
                                      const Explanation::Budgets& budgets);

/// The answers of an explanation as text of at most about 75 lines. Plans within a few other
/// budgets, which takes as long as planning does.
std::string explain(const Explanation& explanation);

}  // namespace palimpsest
