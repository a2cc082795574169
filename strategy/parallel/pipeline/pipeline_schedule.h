#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "strategy/parallel/partition/piece.h"
#include "strategy/parallel/partition/task_run.h"

namespace palimpsest {

/// The tasks of each pipeline stage, in order.
struct PipelineSchedule {
  /// One micro-batch through one stage.
  struct Task {
    bool backward = false;
    int micro_batch = 0;

    bool operator==(const Task&) const = default;
  };
  std::vector<std::vector<Task>> stages;
  int micro_batches = 0;
};

/// The order for gradients of micro-batches: 1F1B (PipeDream-Flush: Narayanan et al., 2021). Stage
/// s of S begins with S − s forward tasks. Then each backward task is followed by the next forward
/// task, and the remaining backward tasks come last. So a stage has at most S − s micro-batches in
/// flight, forward but not backward. Backward tasks are in the order of the micro-batches.
PipelineSchedule one_forward_one_backward(int stages, int micro_batches);
/// The order for values of micro-batches: forward tasks alone.
PipelineSchedule forward_only(int stages, int micro_batches);

/// The dependencies between tasks. The tasks of one stage run in order. A task waits for the task
/// of the same micro-batch in the previous piece. In a forward-only schedule a task of micro-batch
/// m also waits until the next stage has run micro-batch m − 2.
class PipelineOrder {
 public:
  explicit PipelineOrder(const PipelineSchedule& schedule);

  struct Task {
    int stage;
    PipelineSchedule::Task what;
  };
  /// The tasks of stage 0 in order, then those of stage 1, and so on.
  std::span<const Task> tasks() const { return tasks_; }
  const TaskEdges& edges() const { return edges_; }
  int micro_batches() const { return micro_batches_; }

  /// The most micro-batches that can have begun piece `first` without having ended piece `last`,
  /// however long tasks take. `last` is not before `first`. A value made in `first` and read until
  /// `last` needs that many places: micro-batch m uses place m modulo their number.
  int places(PieceId first, PieceId last) const;
  /// The most micro-batches that a stage has in flight.
  int in_flight(int stage) const;

 private:
  std::uint32_t task_of(PieceId piece, int micro_batch) const {
    return task_of_[piece * static_cast<std::size_t>(micro_batches_) +
                    static_cast<std::size_t>(micro_batch)];
  }
  void find_ends_before();

  int stages_;
  int micro_batches_;
  std::vector<Task> tasks_;
  std::vector<std::uint32_t> position_;  // by task: its index in its stage
  std::vector<std::uint32_t> task_of_;   // by piece and micro-batch
  TaskEdges edges_{0};
  /// By task and stage: how many of the stage's tasks have certainly ended when the task begins.
  std::vector<std::uint32_t> ended_before_;
};

}  // namespace palimpsest
