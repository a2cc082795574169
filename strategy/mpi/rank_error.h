#pragma once

#include <string>

#include "autodiff/error.h"
#include "autodiff/export.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Thrown by a call that all ranks make, because of another rank: it failed, left, or disagrees
/// with this one. A rank that fails itself throws its own error.
class RankError : public EnvironmentError {
 public:
  RankError(const std::string& message, int rank) : EnvironmentError(message), rank_(rank) {}
  /// The first rank that failed, left, or differs from rank 0. It is the same on every rank.
  int rank() const { return rank_; }

 private:
  int rank_;
};

}  // namespace palimpsest
