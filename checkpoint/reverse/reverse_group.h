#pragma once

#include <cstdint>
#include <exception>
#include <span>
#include <string>

#include "autodiff/export.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Processes that run one chain together, each with its part of the state. All of them call each
/// function at the same points of the run, in the same order.
class ReverseGroup {
 public:
  virtual ~ReverseGroup() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Replaces each number by the least that any process gave. Throws if another process has called
  /// `end` with an exception.
  virtual void least(std::span<std::int64_t> numbers) = 0;
  virtual void least(std::span<double> numbers) = 0;
  /// Throws in all processes if one of them gave other lines than the first one.
  virtual void require_same(std::span<const std::string> lines) = 0;
  /// Ends a run. `failure` is the exception that ended it in this process, or null. Throws
  /// `failure`. Throws in all processes if it is not null in one of them.
  virtual void end(const std::exception_ptr& failure) = 0;
};

}  // namespace palimpsest
