#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "strategy/parallel/pipeline/pipeline_schedule.h"
#include "tests/catch.h"

namespace palimpsest::schedule_test {
namespace {

/// Begin and end of each task, by the seconds that it takes. Every task begins as early as
/// possible.
struct Times {
  std::vector<double> begin;
  std::vector<double> end;
  double last = 0;
};

template <class Seconds>
Times times_of(const PipelineOrder& order, Seconds seconds) {
  const std::size_t count = order.tasks().size();
  Times times{std::vector<double>(count), std::vector<double>(count)};
  std::vector<std::uint32_t> waiting;
  std::vector<std::uint32_t> ready;
  for (std::uint32_t task = 0; task < count; ++task) {
    waiting.push_back(order.edges().predecessor_count(task));
    if (waiting.back() == 0) ready.push_back(task);
  }
  std::size_t done = 0;
  while (!ready.empty()) {
    const std::uint32_t task = ready.back();
    ready.pop_back();
    ++done;
    times.end[task] = times.begin[task] + seconds(order.tasks()[task]);
    times.last = std::max(times.last, times.end[task]);
    for (const std::uint32_t next : order.edges().successors(task)) {
      times.begin[next] = std::max(times.begin[next], times.end[task]);
      if (--waiting[next] == 0) ready.push_back(next);
    }
  }
  REQUIRE(done == count);  // no task waits for itself
  return times;
}

TEST_CASE("schedules: 1F1B in full, for three stages and four micro-batches") {
  const auto text = [](const std::vector<PipelineSchedule::Task>& tasks) {
    std::string all;
    for (const auto& task : tasks) {
      all += (all.empty() ? "" : " ") + std::string(task.backward ? "B" : "F") +
             std::to_string(task.micro_batch);
    }
    return all;
  };
  const PipelineSchedule schedule = one_forward_one_backward(3, 4);
  REQUIRE(schedule.stages.size() == 3);
  CHECK(text(schedule.stages[0]) == "F0 F1 F2 B0 F3 B1 B2 B3");
  CHECK(text(schedule.stages[1]) == "F0 F1 B0 F2 B1 F3 B2 B3");
  CHECK(text(schedule.stages[2]) == "F0 B0 F1 B1 F2 B2 F3 B3");
  CHECK(text(one_forward_one_backward(3, 1).stages[0]) == "F0 B0");
  CHECK(text(forward_only(2, 3).stages[1]) == "F0 F1 F2");
}

TEST_CASE("schedules: order, micro-batches in flight, and bubbles have their closed forms") {
  for (int stages = 1; stages <= 6; ++stages) {
    for (int batches = 1; batches <= 9; ++batches) {
      CAPTURE(stages, batches);
      const PipelineSchedule schedule = one_forward_one_backward(stages, batches);
      const PipelineOrder order(schedule);
      for (int stage = 0; stage < stages; ++stage) {
        int flying = 0;
        int most = 0;
        std::array<int, 2> next{};
        for (const PipelineSchedule::Task& task :
             schedule.stages[static_cast<std::size_t>(stage)]) {
          CHECK(task.micro_batch == next[task.backward ? 1 : 0]++);
          flying += task.backward ? -1 : 1;
          CHECK(flying >= 0);
          most = std::max(most, flying);
        }
        CHECK(next == std::array{batches, batches});
        CHECK(most == std::min(batches, stages - stage));
        CHECK(order.in_flight(stage) == most);
      }
      // With equal forward and backward tasks, every stage is idle for twice as many slots as there
      // are other stages.
      const Times times = times_of(order, [](const auto&) { return 1.0; });
      CHECK(times.last == 2 * batches + 2 * (stages - 1));
      const Times twice =
          times_of(order, [](const auto& t) { return t.what.backward ? 2.0 : 1.0; });
      CHECK(twice.last == 3 * batches + 3 * (stages - 1));
    }
  }
}

TEST_CASE("schedules: places are as many as micro-batches can be between two pieces, and no more") {
  CHECK(rc::check("any times", [] {
    const int stages = *rc::gen::inRange(1, 5);
    const int batches = *rc::gen::inRange(1, 8);
    const bool values = *rc::gen::arbitrary<bool>();
    const PipelineOrder order(values ? forward_only(stages, batches)
                                     : one_forward_one_backward(stages, batches));
    const int pieces = values ? stages : 2 * stages;
    std::vector<double> seconds;
    for (std::size_t i = 0; i < order.tasks().size(); ++i) {
      seconds.push_back(*rc::gen::element(0.01, 1.0, 100.0));
    }
    std::size_t at = 0;
    const Times times = times_of(order, [&](const auto&) { return seconds[at++]; });
    const auto piece_of = [&](const PipelineOrder::Task& task) {
      return task.what.backward ? 2 * stages - 1 - task.stage : task.stage;
    };
    const auto task_of = [&](int piece, int m) {
      for (std::size_t t = 0; t < order.tasks().size(); ++t) {
        const auto& task = order.tasks()[t];
        if (piece_of(task) == piece && task.what.micro_batch == m) return t;
      }
      throw std::out_of_range("no such task");
    };
    for (int first = 0; first < pieces; ++first) {
      for (int last = first; last < pieces; ++last) {
        const int places = order.places(static_cast<PieceId>(first), static_cast<PieceId>(last));
        RC_ASSERT(places >= 1);
        RC_ASSERT(places <= batches);
        // The next user of a place begins after the previous user has ended.
        for (int m = places; m < batches; ++m) {
          RC_ASSERT(times.end[task_of(last, m - places)] <= times.begin[task_of(first, m)]);
        }
      }
    }
  }));
  // Every task that waits for nothing begins at once, and the last piece never ends. Then as many
  // micro-batches are open as there are places.
  for (int stages = 1; stages <= 4; ++stages) {
    const int batches = 6;
    const PipelineOrder order(one_forward_one_backward(stages, batches));
    for (int first = 0; first < 2 * stages; ++first) {
      for (int last = first; last < 2 * stages; ++last) {
        const int places = order.places(static_cast<PieceId>(first), static_cast<PieceId>(last));
        int most = 0;
        for (int slow = 0; slow < batches; ++slow) {
          int open = 0;
          double slow_begins = 0;
          std::vector<double> begins;
          const auto piece_of = [&](const PipelineOrder::Task& task) {
            return task.what.backward ? 2 * stages - 1 - task.stage : task.stage;
          };
          const Times times = times_of(order, [&](const PipelineOrder::Task& task) {
            return piece_of(task) == last && task.what.micro_batch == slow ? 1e6 : 1e-3;
          });
          for (std::size_t t = 0; t < order.tasks().size(); ++t) {
            const auto& task = order.tasks()[t];
            if (piece_of(task) == first) begins.push_back(times.begin[t]);
            if (piece_of(task) == last && task.what.micro_batch == slow) {
              slow_begins = times.begin[t];
            }
          }
          for (int m = slow; m < batches; ++m) {
            open += begins[static_cast<std::size_t>(m)] < slow_begins + 1e5 ? 1 : 0;
          }
          most = std::max(most, open);
        }
        CAPTURE(stages, first, last);
        CHECK(most == places);
      }
    }
  }
}

}  // namespace
}  // namespace palimpsest::schedule_test
