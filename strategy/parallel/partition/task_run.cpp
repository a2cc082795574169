#include "strategy/parallel/partition/task_run.h"

#include <oneapi/tbb/task_group.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

#include "autodiff/usable_threads.h"

namespace palimpsest {
namespace {

class TaskRun {
 public:
  TaskRun(const TaskEdges& edges, const std::function<void(std::uint32_t)>& task)
      : edges_(edges), task_(task), waiting_(edges.size()) {
    for (std::uint32_t each = 0; each < waiting_.size(); ++each) {
      waiting_[each].store(edges.predecessor_count(each), std::memory_order_relaxed);
    }
  }

  void run() {
    run_group(group_, [this] {
      for (std::uint32_t each = 0; each < waiting_.size(); ++each) {
        if (edges_.predecessor_count(each) == 0) group_.run([this, each] { follow(each); });
      }
    });
  }

  std::exception_ptr failure() const { return failure_; }

 private:
  /// Runs a task and then its successors that have become ready.
  void follow(std::uint32_t task) {
    if (failed_.load(std::memory_order_relaxed)) return;
    try {
      task_(task);
    } catch (...) {
      const std::lock_guard lock(failing_);
      if (!failed_.exchange(true)) failure_ = std::current_exception();
      return;
    }
    for (const std::uint32_t next : edges_.successors(task)) {
      if (waiting_[next].fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
      group_.run([this, next] { follow(next); });
    }
  }

  const TaskEdges& edges_;
  const std::function<void(std::uint32_t)>& task_;
  std::vector<std::atomic<std::uint32_t>> waiting_;
  tbb::task_group group_;
  std::atomic<bool> failed_ = false;
  std::mutex failing_;
  std::exception_ptr failure_;
};

}  // namespace

void TaskEdges::add(std::uint32_t before, std::uint32_t after) {
  std::vector<std::uint32_t>& known = successors_[before];
  if (std::ranges::find(known, after) != known.end()) return;
  known.push_back(after);
  ++predecessors_[after];
}

void run_tasks(tbb::task_arena& arena, const TaskEdges& edges,
               const std::function<void(std::uint32_t)>& task) {
  std::exception_ptr failure;
  arena.execute([&] {
    TaskRun run(edges, task);
    run.run();
    failure = run.failure();
  });
  if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace palimpsest
