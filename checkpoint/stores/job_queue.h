#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace palimpsest {

/// Runs jobs one at a time, in the order they were added, while the caller continues. They run on a
/// TBB thread if one is available, otherwise on a thread that waits for one of them. Where TBB may
/// use one thread only, `add` runs them. So every job ends, however many threads there are and
/// wherever a TBB program waits. A job itself must not wait for another job, nor for TBB.
///
/// Each job belongs to a key. When a job fails, the later jobs of its key are skipped until a
/// thread waits for the key and receives the error. Thread-safe.
class JobQueue {
 public:
  using Key = std::uint32_t;

  JobQueue();
  /// Skips jobs that have not begun and waits for the running one.
  ~JobQueue();
  JobQueue(const JobQueue&) = delete;
  JobQueue& operator=(const JobQueue&) = delete;

  void add(Key key, std::function<void()> job);
  /// Waits for the jobs of one key and rethrows what one of them has thrown.
  void wait(Key key);
  /// Waits for all jobs and rethrows what one of them has thrown. Other errors are discarded.
  void wait_all();

 private:
  struct State;
  void offer();

  std::shared_ptr<State> state_;
  struct Threads;
  std::unique_ptr<Threads> threads_;
};

}  // namespace palimpsest
