#pragma once

#include <cstdint>
#include <span>

#include "autodiff/export.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Processes that run one chain together, each with its part of the state. All of them call each
/// function at the same points of the run, in the same order. An exception of one process must
/// make the others' next call throw too.
class ReverseGroup {
 public:
  virtual ~ReverseGroup() = default;
  virtual int rank() const { return 0; }
  virtual int size() const { return 1; }
  /// Replaces each number by the least that any process gave.
  virtual void least(std::span<std::int64_t> numbers) = 0;
  virtual void least(std::span<double> numbers) = 0;
};

}  // namespace palimpsest
