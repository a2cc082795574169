#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "strategy/backward.h"

namespace palimpsest {

/// Whether two runs have the same bits.
inline bool equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Tensor& x, const Tensor& y) { return same_bits(x, y); });
}

/// The number of steps of a profiled run that executed the operation of that name.
inline int count_of(const Report& report, std::string_view operation) {
  return static_cast<int>(
      std::count_if(report.steps.begin(), report.steps.end(),
                    [&](const Report::Step& step) { return step.operation == operation; }));
}

}  // namespace palimpsest
