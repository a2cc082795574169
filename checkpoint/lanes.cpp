#include "checkpoint/lanes.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace palimpsest {
namespace {

template <class T>
using LowestFirst = std::priority_queue<T, std::vector<T>, std::greater<T>>;

class Lanes {
 public:
  Lanes(const Graph& graph, const Schedule& schedule, const Dependencies& dependencies, int lanes)
      : graph_(graph), schedule_(schedule), dependencies_(dependencies), free_(lanes) {}

  StepTimes run() {
    const std::uint32_t count = dependencies_.step_count();
    times_.begin.resize(count);
    times_.end.resize(count);
    for (std::uint32_t step = 0; step < count; ++step) {
      waits_for_.push_back(dependencies_.predecessor_count(step));
    }
    for (std::uint32_t step = 0; step < count; ++step) {
      if (dependencies_.predecessor_count(step) == 0) make_ready(step);
    }
    end_at_once();
    for (;;) {
      while (free_ > 0 && !ready_.empty()) begin_first();
      if (running_.empty()) return std::move(times_);
      times_.all = running_.top().end;
      while (!running_.empty() && running_.top().end == times_.all) {
        const Running one = running_.top();
        running_.pop();
        free_ += one.lanes;
        release_after(one.step);
      }
    }
  }

 private:
  struct Running {
    double end;
    std::uint32_t step;
    int lanes;
    auto operator<=>(const Running&) const = default;
  };

  void begin_first() {
    const std::uint32_t step = ready_.top();
    ready_.pop();
    const Step& action = schedule_.steps[step];
    const double seconds = seconds_on_one_thread(graph_, action);
    const bool is_shared = seconds > shared_from && !runs_on_one_lane(graph_, action);
    const int lanes = is_shared ? free_ : 1;
    free_ -= lanes;
    times_.begin[step] = times_.all;
    times_.end[step] = times_.all + seconds / lanes;
    running_.push({times_.end[step], step, lanes});
  }

  void release_after(std::uint32_t step) {
    count_down(step);
    end_at_once();
  }

  void make_ready(std::uint32_t step) {
    if (seconds_on_one_thread(graph_, schedule_.steps[step]) > 0) {
      ready_.push(step);
    } else {
      ended_.push_back(step);
    }
  }

  /// Steps that take no time end as soon as they are ready.
  void end_at_once() {
    while (!ended_.empty()) {
      const std::uint32_t step = ended_.back();
      ended_.pop_back();
      times_.begin[step] = times_.end[step] = times_.all;
      count_down(step);
    }
  }

  void count_down(std::uint32_t step) {
    for (const std::uint32_t next : dependencies_.successors(step)) {
      if (--waits_for_[next] == 0) make_ready(next);
    }
  }

  const Graph& graph_;
  const Schedule& schedule_;
  const Dependencies& dependencies_;
  StepTimes times_;
  int free_;
  std::vector<std::uint32_t> waits_for_;
  LowestFirst<std::uint32_t> ready_;
  LowestFirst<Running> running_;
  std::vector<std::uint32_t> ended_;
};

}  // namespace

double seconds_on_one_thread(const Graph& graph, const Step& step) {
  if (step.kind == Step::Kind::drop) return 0;
  const double cost = graph.cost(step.id);
  return graph.is_opaque(step.id) ? std::max(cost, shared_from) : cost;
}

bool runs_on_one_lane(const Graph& graph, const Step& step) {
  if (step.kind == Step::Kind::drop) return false;
  if (graph.is_opaque(step.id)) return true;
  const double seconds = graph.cost(step.id);
  return seconds >= handed_over_from && (graph.is_serial(step.id) || seconds <= shared_from);
}

StepTimes times_on(const Graph& graph, const Schedule& schedule, const Dependencies& dependencies,
                   int lanes) {
  return Lanes(graph, schedule, dependencies, lanes).run();
}

}  // namespace palimpsest
