#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "strategy/parallel/partition/piece.h"
#include "strategy/parallel/partition/task_run.h"

namespace palimpsest {

/// What the stages of a pipeline do, each one thing after the other.
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

/// Gradients of micro-batches, in the order 1F1B (PipeDream-Flush: Narayanan et al., 2021): stage s
/// of S begins with S − s forward tasks, follows each backward task by the next forward task, and
/// ends with the backward tasks left. So it has at most S − s micro-batches in flight, forward but
/// not backward. Backward tasks are in the order of the micro-batches.
PipelineSchedule one_forward_one_backward(int stages, int micro_batches);
/// Values of micro-batches: forward tasks alone.
PipelineSchedule forward_only(int stages, int micro_batches);

/// What waits for what: tasks of one stage for each other, and a task for that of the same
/// micro-batch in the piece before. Forward tasks that no backward task follows wait for the next
/// stage to have taken over the micro-batch before the last, too.
class PipelineOrder {
 public:
  explicit PipelineOrder(const PipelineSchedule& schedule);

  struct Task {
    int stage;
    PipelineSchedule::Task what;
  };
  /// Those of stage 0 in order, then those of stage 1, ….
  std::span<const Task> tasks() const { return tasks_; }
  const TaskEdges& edges() const { return edges_; }
  int micro_batches() const { return micro_batches_; }

  /// How many micro-batches at most, however long tasks take, have begun piece `first` and not
  /// ended piece `last`, which is `first` or behind it. So what is made in the one and read up to
  /// the other needs as many places: micro-batch m lies in place m modulo their number.
  int places(PieceId first, PieceId last) const;
  /// The same of whole stages: micro-batches that a stage has in flight.
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
  std::vector<std::uint32_t> position_;  // by task, in its stage
  std::vector<std::uint32_t> task_of_;   // by piece and micro-batch
  TaskEdges edges_{0};
  /// By task and stage: how many of the stage's tasks have ended when the task begins, at least.
  std::vector<std::uint32_t> ended_before_;
};

}  // namespace palimpsest
