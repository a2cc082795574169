#include "strategy/parallel/pipeline/pipeline_schedule.h"

#include <algorithm>

namespace palimpsest {

PipelineSchedule one_forward_one_backward(int stages, int micro_batches) {
  PipelineSchedule schedule{.stages = {}, .micro_batches = micro_batches};
  for (int stage = 0; stage < stages; ++stage) {
    std::vector<PipelineSchedule::Task>& tasks = schedule.stages.emplace_back();
    const int first = std::min(micro_batches, stages - stage);
    for (int m = 0; m < first; ++m) tasks.push_back({false, m});
    for (int m = 0; m < micro_batches; ++m) {
      tasks.push_back({true, m});
      if (first + m < micro_batches) tasks.push_back({false, first + m});
    }
  }
  return schedule;
}

PipelineSchedule forward_only(int stages, int micro_batches) {
  PipelineSchedule schedule{.stages = {}, .micro_batches = micro_batches};
  for (int stage = 0; stage < stages; ++stage) {
    std::vector<PipelineSchedule::Task>& tasks = schedule.stages.emplace_back();
    for (int m = 0; m < micro_batches; ++m) tasks.push_back({false, m});
  }
  return schedule;
}

PipelineOrder::PipelineOrder(const PipelineSchedule& schedule)
    : stages_(static_cast<int>(schedule.stages.size())), micro_batches_(schedule.micro_batches) {
  const auto pieces = 2 * schedule.stages.size();
  constexpr std::uint32_t absent = 0xffffffffu;
  task_of_.assign(pieces * static_cast<std::size_t>(micro_batches_), absent);
  for (int stage = 0; stage < stages_; ++stage) {
    std::uint32_t position = 0;
    for (const PipelineSchedule::Task& what : schedule.stages[static_cast<std::size_t>(stage)]) {
      const int piece = what.backward ? 2 * stages_ - 1 - stage : stage;
      const auto index = piece * micro_batches_ + what.micro_batch;
      task_of_[static_cast<std::size_t>(index)] = static_cast<std::uint32_t>(tasks_.size());
      tasks_.push_back({stage, what});
      position_.push_back(position++);
    }
  }
  edges_ = TaskEdges(tasks_.size());
  const auto add = [&](std::uint32_t before, std::uint32_t after) {
    if (before != absent && after != absent) edges_.add(before, after);
  };
  for (std::uint32_t task = 1; task < tasks_.size(); ++task) {
    if (tasks_[task - 1].stage == tasks_[task].stage) add(task - 1, task);
  }
  for (PieceId piece = 0; piece + 1 < pieces; ++piece) {
    // The last stage runs its two pieces in order anyway.
    if (static_cast<int>(piece) + 1 == stages_) continue;
    for (int m = 0; m < micro_batches_; ++m) add(task_of(piece, m), task_of(piece + 1, m));
  }
  const bool has_backward =
      std::ranges::any_of(tasks_, [](const Task& t) { return t.what.backward; });
  for (int stage = 0; !has_backward && stage + 1 < stages_; ++stage) {
    const auto piece = static_cast<PieceId>(stage);
    for (int m = 2; m < micro_batches_; ++m) add(task_of(piece + 1, m - 2), task_of(piece, m));
  }
  find_ends_before();
}

void PipelineOrder::find_ends_before() {
  const auto stages = static_cast<std::size_t>(stages_);
  ended_before_.assign(tasks_.size() * stages, 0);
  std::vector<std::uint32_t> waiting;
  std::vector<std::uint32_t> ready;
  for (std::uint32_t task = 0; task < tasks_.size(); ++task) {
    waiting.push_back(edges_.predecessor_count(task));
    if (waiting[task] == 0) ready.push_back(task);
  }
  while (!ready.empty()) {
    const std::uint32_t task = ready.back();
    ready.pop_back();
    for (const std::uint32_t next : edges_.successors(task)) {
      for (std::size_t stage = 0; stage < stages; ++stage) {
        std::uint32_t& ended = ended_before_[next * stages + stage];
        ended = std::max(ended, ended_before_[task * stages + stage]);
      }
      std::uint32_t& own =
          ended_before_[next * stages + static_cast<std::size_t>(tasks_[task].stage)];
      own = std::max(own, position_[task] + 1);
      if (--waiting[next] == 0) ready.push_back(next);
    }
  }
}

int PipelineOrder::places(PieceId first, PieceId last) const {
  int most = 0;
  int ended = 0;  // micro-batches that have certainly ended `last` when m begins `first`
  for (int m = 0; m < micro_batches_; ++m) {
    const std::uint32_t begins = task_of(first, m);
    while (ended < m) {
      const std::uint32_t ends = task_of(last, ended);
      const std::size_t stage = static_cast<std::size_t>(tasks_[ends].stage);
      const std::uint32_t known = ended_before_[begins * static_cast<std::size_t>(stages_) + stage];
      if (known <= position_[ends]) break;
      ++ended;
    }
    most = std::max(most, m + 1 - ended);
  }
  return most;
}

int PipelineOrder::in_flight(int stage) const {
  const auto forward = static_cast<PieceId>(stage);
  const auto backward = static_cast<PieceId>(2 * stages_ - 1 - stage);
  const bool has_backward =
      std::ranges::any_of(tasks_, [](const Task& t) { return t.what.backward; });
  return places(forward, has_backward ? backward : forward);
}

}  // namespace palimpsest
