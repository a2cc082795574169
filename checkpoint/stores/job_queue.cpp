#include "checkpoint/stores/job_queue.h"

#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <utility>

#include "autodiff/usable_threads.h"

namespace palimpsest {

/// State that a late TBB thread may still access after the queue is gone.
struct JobQueue::State {
  struct Job {
    Key key;
    std::function<void()> run;
  };

  std::mutex mutex;
  std::condition_variable ended;  // signalled when a job has ended
  std::deque<Job> jobs;           // the running one first
  bool running = false;
  bool offered = false;  // to TBB: its thread has not come yet, or is at work
  std::map<Key, std::exception_ptr> failures;

  bool has(Key key) const {
    return std::any_of(jobs.begin(), jobs.end(), [&](const Job& job) { return job.key == key; });
  }

  void run_first(std::unique_lock<std::mutex>& lock) {
    running = true;
    Job& job = jobs.front();  // stays in place while others are added
    std::exception_ptr failure;
    if (!failures.contains(job.key)) {
      lock.unlock();
      try {
        job.run();
      } catch (...) {
        failure = std::current_exception();
      }
      job.run = nullptr;
      lock.lock();
    }
    if (failure != nullptr) failures[job.key] = std::move(failure);
    jobs.pop_front();
    running = false;
    ended.notify_all();
  }

  /// Runs jobs, or waits for the running one, while `left` returns true.
  template <class Left>
  void work_off(std::unique_lock<std::mutex>& lock, Left left) {
    while (left()) {
      if (running) {
        ended.wait(lock);
      } else {
        run_first(lock);
      }
    }
  }

  /// Runs on a TBB thread. It returns when another thread runs a job; that thread offers the rest.
  void run_all() {
    std::unique_lock lock(mutex);
    while (!running && !jobs.empty()) run_first(lock);
    offered = false;
  }

  /// True when the remaining jobs must be offered to TBB. The caller then does so.
  bool must_offer() { return !running && !jobs.empty() && !std::exchange(offered, true); }
};

struct JobQueue::Threads {
  // One slot for a worker, which no waiting thread can take. High priority, because the jobs are
  // short and other threads wait for them.
  tbb::task_arena arena{1, 0, tbb::task_arena::priority::high};
};

JobQueue::JobQueue() : state_(std::make_shared<State>()), threads_(std::make_unique<Threads>()) {}

JobQueue::~JobQueue() {
  std::unique_lock lock(state_->mutex);
  state_->jobs.erase(state_->jobs.begin() + (state_->running ? 1 : 0), state_->jobs.end());
  state_->ended.wait(lock, [&] { return !state_->running; });
}

void JobQueue::offer() {
  with_threads([&] { threads_->arena.enqueue([state = state_] { state->run_all(); }); });
}

namespace {

/// Whether TBB may use another thread. Otherwise it would print a warning when it is asked for one.
bool has_other_threads() { return usable_threads() > 1; }

}  // namespace

void JobQueue::add(Key key, std::function<void()> job) {
  bool must_offer;
  {
    std::unique_lock lock(state_->mutex);
    state_->jobs.push_back({key, std::move(job)});
    if (!has_other_threads()) {
      return state_->work_off(lock, [&] { return !state_->jobs.empty(); });
    }
    must_offer = state_->must_offer();
  }
  if (must_offer) offer();
}

void JobQueue::wait(Key key) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  state.work_off(lock, [&] { return state.has(key); });
  std::exception_ptr failure;
  if (auto node = state.failures.extract(key)) failure = std::move(node.mapped());
  const bool must_offer = has_other_threads() && state.must_offer();
  lock.unlock();
  if (must_offer) offer();
  if (failure != nullptr) std::rethrow_exception(failure);
}

void JobQueue::wait_all() {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  state.work_off(lock, [&] { return !state.jobs.empty(); });
  if (state.failures.empty()) return;
  const std::exception_ptr failure = state.failures.begin()->second;
  state.failures.clear();
  lock.unlock();
  std::rethrow_exception(failure);
}

}  // namespace palimpsest
