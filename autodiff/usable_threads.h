#pragma once

#include <string>

#include "autodiff/export.h"

namespace palimpsest PALIMPSEST_EXPORT {  // for palimpsest-mpi

/// Most threads that oneTBB uses in this process, with the caller's. The first call asks the system
/// whether it starts as many as oneTBB would. If it does not, oneTBB is limited to those it starts,
/// until the process ends: it would throw an untyped error in the middle of a run. With one usable
/// thread, everything runs on the caller's.
int usable_threads();

/// True if the system starts no thread besides the caller's. Likewise.
bool starts_no_threads();

/// Why a run that asked for `threads` threads, 0 for all, gets fewer; empty if it does not.
std::string thread_problem(int threads);

/// Called in a handler of an exception that passed through oneTBB. Throws an `EnvironmentError` if
/// the system refused a thread after `usable_threads` had counted it. Otherwise rethrows the
/// exception.
[[noreturn]] void rethrow_with_type();

/// Calls `f`, which has oneTBB start threads, with `rethrow_with_type` as the handler.
template <class F>
void with_threads(F f) {
  try {
    f();
  } catch (...) {
    rethrow_with_type();
  }
}

/// Calls `add`, which adds tasks to a `tbb::task_group`, and waits for them. Likewise: then tasks
/// that have not begun are dropped, and the others have ended.
template <class Group, class F>
void run_group(Group& group, F add) {
  try {
    add();
    group.wait();
  } catch (...) {
    try {
      group.cancel();
      group.wait();
    } catch (...) {
      // The first error counts.
    }
    rethrow_with_type();
  }
}

}  // namespace palimpsest
