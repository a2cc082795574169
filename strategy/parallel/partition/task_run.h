#pragma once

#include <oneapi/tbb/task_arena.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace palimpsest {

/// What waits for what.
class TaskEdges {
 public:
  explicit TaskEdges(std::size_t tasks) : successors_(tasks), predecessors_(tasks) {}

  /// Says that `after` waits for `before`. More than once is as once.
  void add(std::uint32_t before, std::uint32_t after);

  std::size_t size() const { return successors_.size(); }
  std::span<const std::uint32_t> successors(std::uint32_t task) const { return successors_[task]; }
  std::uint32_t predecessor_count(std::uint32_t task) const { return predecessors_[task]; }

 private:
  std::vector<std::vector<std::uint32_t>> successors_;
  std::vector<std::uint32_t> predecessors_;
};

/// Calls `task` for each of them, in the threads of an arena and at once where they do not wait for
/// each other, until all is done or one throws. Then no other begins, and the exception is passed
/// on when those that had begun have ended.
void run_tasks(tbb::task_arena& arena, const TaskEdges& edges,
               const std::function<void(std::uint32_t)>& task);

}  // namespace palimpsest
