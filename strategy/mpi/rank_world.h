#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "strategy/mpi/rank_error.h"

namespace palimpsest {

class RankLink;

/// The processes that `mpirun` started a program as. Each has a rank; a program started without
/// `mpirun` is a world of one. For the life of a program: MPI is initialised where nobody has done
/// that, and then finalised at the end, after which there is no other world.
///
/// Ranks come together in calls that all of them make, in one order. Such a call either succeeds
/// everywhere or throws everywhere: a rank that fails in it throws its own error, and the others a
/// `RankError` that says what happened on the first rank that failed. Afterwards ranks may go on.
/// A rank that leaves, since an error ended it outside of these calls, has the others throw a
/// `RankError` too, in their next call. All calls come from the thread that made the world.
class RankWorld {
 public:
  /// Throws `EnvironmentError` when MPI cannot be used by several threads in turn, or was finalised
  /// before.
  RankWorld();
  /// Waits until all ranks leave, or have been told that this one has.
  ~RankWorld();
  RankWorld(const RankWorld&) = delete;
  RankWorld& operator=(const RankWorld&) = delete;

  int rank() const;
  int size() const;
  /// Ranks on this machine, this one among them.
  int ranks_here() const;

  /// Does work that may fail on some ranks, such as reading a file; all ranks call it. Throws what
  /// `work` throws, and `RankError`.
  void together(const std::function<void()>& work);

  /// The first of the ranks that the last call of all failed on, where it did: who is to tell the
  /// user.
  std::optional<int> first_failed() const;

  /// What the library's own calls go through.
  RankLink& link() { return *link_; }

 private:
  bool initialised_ = false;  // by this
  std::unique_ptr<RankLink> link_;
};

}  // namespace palimpsest
