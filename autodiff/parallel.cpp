#include "autodiff/parallel.h"

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <utility>

#include "autodiff/usable_threads.h"

namespace palimpsest {
namespace {

thread_local bool is_serial = false;

}  // namespace

SerialScope::SerialScope(bool serial) : before_(std::exchange(is_serial, serial)) {}
SerialScope::~SerialScope() { is_serial = before_; }

void parallel_chunks(std::int64_t n, std::int64_t grain, RangeFunction f) {
  if (n <= 0) return;
  const std::int64_t chunks = (n + grain - 1) / grain;
  const auto run = [&](std::int64_t chunk) { f(chunk * grain, std::min(n, (chunk + 1) * grain)); };
  if (chunks == 1 || max_threads() == 1) {
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) run(chunk);
    return;
  }
  // A group of the caller's tasks may be cancelled, because another of them threw; oneTBB would
  // skip these chunks then, and the results would be wrong.
  tbb::task_group_context own(tbb::task_group_context::isolated);
  // Without isolation, a thread waiting here could steal another node of the tape. If it then waits
  // for that node, it delays this one.
  tbb::this_task_arena::isolate([&] {
    const auto run_range = [&](const auto& range) {
      for (std::int64_t chunk = range.begin(); chunk < range.end(); ++chunk) run(chunk);
    };
    with_threads(
        [&] { tbb::parallel_for(tbb::blocked_range<std::int64_t>(0, chunks), run_range, own); });
  });
}

int max_threads() {
  if (is_serial) return 1;
  const int most = tbb::this_task_arena::max_concurrency();
  return most == 1 || starts_no_threads() ? 1 : most;
}

int thread_index() {
  if (is_serial) return 0;
  const int index = tbb::this_task_arena::current_thread_index();
  // Without other threads, each caller has a workspace of its own.
  return index <= 0 || starts_no_threads() ? 0 : index;
}

}  // namespace palimpsest
