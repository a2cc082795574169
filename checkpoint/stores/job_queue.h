#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace palimpsest {

/// Jobs carried out one at a time, in the order they were added, while the caller goes on: on a
/// thread of TBB's where one is to be had, and otherwise on a thread that waits for one of them. So
/// every job ends, however many threads there are and wherever in a program of TBB's one waits; a
/// job itself must not wait for another, nor for TBB.
///
/// Each job is one of a key's. When one fails, those of its key that follow are left out until
/// somebody waits for the key and is told. Any thread may call any member.
class JobQueue {
 public:
  using Key = std::uint32_t;

  JobQueue();
  /// Leaves out what has not begun and waits for what has.
  ~JobQueue();
  JobQueue(const JobQueue&) = delete;
  JobQueue& operator=(const JobQueue&) = delete;

  void add(Key key, std::function<void()> job);
  /// Waits for the jobs of one key and throws what one of them has thrown.
  void wait(Key key);
  /// Waits for all jobs and throws what one of them has thrown; what others have is forgotten.
  void wait_all();

 private:
  struct State;
  void offer();

  std::shared_ptr<State> state_;
  struct Threads;
  std::unique_ptr<Threads> threads_;
};

}  // namespace palimpsest
