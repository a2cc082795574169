#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "autodiff/error.h"
#include "autodiff/export.h"
#include "strategy/mpi/rank_error.h"

namespace palimpsest PALIMPSEST_EXPORT {

class RankLink;

/// The processes that `mpirun` started a program as. Each has a rank; a program started without
/// `mpirun` is a world of one. Keep one world for the life of a program. If MPI is not initialised
/// yet, the world initialises it, and finalises it at the end; after that no other world can be
/// made.
///
/// Ranks come together in calls that all of them make, in one order. Such a call either succeeds on
/// all ranks or throws on all ranks. A rank that fails throws its own error. The others throw a
/// `RankError` that says what happened on the first rank that failed. Afterwards ranks may
/// continue.
///
/// A rank leaves when an error outside of these calls ends it. Then the others throw a `RankError`
/// in their next call. All calls must come from the thread that made the world.
class RankWorld {
 public:
  /// Throws `EnvironmentError` when MPI cannot be used by several threads in turn, or was finalised
  /// before.
  RankWorld();
  /// Waits until all ranks leave, or have been told that this one has left.
  ~RankWorld();
  RankWorld(const RankWorld&) = delete;
  RankWorld& operator=(const RankWorld&) = delete;

  /// The number of this process, from 0 on, and the number of all processes.
  int rank() const;
  int size() const;
  /// Number of ranks on this machine, including this one.
  int ranks_here() const;

  /// Does work that may fail on some ranks, such as reading a file. All ranks call it. Throws what
  /// `work` throws, and `RankError`.
  void together(const std::function<void()>& work, Where where = Where::current());

  /// The first rank that failed in the last call of all ranks, if any. That rank should report the
  /// error to the user.
  std::optional<int> first_failed() const;

  /// The connection for the library's own calls.
  RankLink& link() { return *link_; }

 private:
  bool initialised_ = false;  // by this object
  std::unique_ptr<RankLink> link_;
};

}  // namespace palimpsest
