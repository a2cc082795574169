#pragma once

#include <oneapi/tbb/task_arena.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace palimpsest {

/// The dependencies between tasks.
class TaskEdges {
 public:
  explicit TaskEdges(std::size_t tasks) : successors_(tasks), predecessors_(tasks) {}

  /// Makes `after` wait for `before`. Idempotent.
  void add(std::uint32_t before, std::uint32_t after);

  std::size_t size() const { return successors_.size(); }
  std::span<const std::uint32_t> successors(std::uint32_t task) const { return successors_[task]; }
  std::uint32_t predecessor_count(std::uint32_t task) const { return predecessors_[task]; }

 private:
  std::vector<std::vector<std::uint32_t>> successors_;
  std::vector<std::uint32_t> predecessors_;
};

/// Calls `task` for each task in the threads of an arena, in parallel where dependencies allow.
/// When one throws, no further task begins. The exception is rethrown after the running tasks have
/// ended.
void run_tasks(tbb::task_arena& arena, const TaskEdges& edges,
               const std::function<void(std::uint32_t)>& task);

}  // namespace palimpsest
