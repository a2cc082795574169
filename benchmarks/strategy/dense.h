#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "palimpsest.h"

namespace palimpsest::benchmarks {

/// A batch of `examples` through layers of equal width, each followed by `activation`. The loss is
/// the mean of the squared outputs.
Workload dense(std::size_t layers, std::int64_t width, std::int64_t examples,
               const std::function<Var(const Var&)>& activation);

}  // namespace palimpsest::benchmarks
