#include "strategy/executor.h"

#include <oneapi/tbb/task_group.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>

#include "autodiff/execute.h"
#include "autodiff/parallel.h"

namespace palimpsest {

Executor::Executor(Tape& tape, const Lowered& lowered, const Plan& plan, const Program& program,
                   Meter meter, const Arena* arena)
    : tape_(tape),
      lowered_(lowered),
      graph_(lowered.graph()),
      plan_(plan),
      program_(program),
      meter_(std::move(meter)),
      arena_(arena) {}

void Executor::run(int threads, bool anomaly) {
  threads_ = threads;
  anomaly_ = anomaly;
  event_.assign(program_.step_count(), none);
  std::uint32_t computes = 0;
  for (std::uint32_t step = 0; step < program_.step_count(); ++step) {
    if (plan_.schedule.steps[step].kind == Step::Kind::compute) event_[step] = computes++;
  }
  events_.assign(computes, Event{});
  start_ = std::chrono::steady_clock::now();
  take_present();
  try {
    if (arena_ != nullptr) move_into_arena();
    measure_others();
    if (threads == 1) {
      run_serially();
    } else {
      run_in_parallel();
    }
  } catch (...) {
    restore(false);
    throw;
  }
  restore(true);
  peak_live_ = meter_.peak() - others_live_;
  peak_reserved_ = meter_.peak_reserved() - others_reserved_;
}

void Executor::take_present() {
  storages_.assign(graph_.value_count(), nullptr);
  written_.assign(graph_.value_count(), 0);
  for (ValueId value = 0; value < graph_.value_count(); ++value) {
    if (graph_.is_source_value(value)) {
      storages_[value] = tape_.buffer(lowered_.recorded(value));
    } else if (graph_.is_present(value)) {
      // Moved, so that a drop frees it: a view and its base share one storage.
      storages_[graph_.storage(value)] = tape_.buffer(lowered_.recorded(value));
      tape_.drop(lowered_.recorded(value));
    }
  }
}

void Executor::measure_others() {
  // What is present is part of the run and counted before it began.
  const Bytes live = live_bytes();
  others_live_ = meter_.live() - live;
  others_reserved_ = meter_.reserved() - (arena_ != nullptr ? arena_->reserved() : live);
  meter_.reset_peaks();
}

void Executor::move_into_arena() {
  // The intervals of what is present come first.
  for (const Interval& place : plan_.layout.intervals) {
    if (place.first > 0 || place.storage == Interval::workspace) return;
    Buffer& storage = storages_[place.storage];
    if (storage == nullptr) return;
    const Buffer copy = arena_->cut(place.offset, place.bytes);
    std::copy_n(storage.get(), place.bytes, copy.get());
    storage = copy;
  }
}

Bytes Executor::live_bytes() const {
  Bytes bytes = 0;
  for (ValueId root = 0; root < graph_.value_count(); ++root) {
    if (storages_[root] != nullptr && !graph_.is_source_value(root)) bytes += graph_.bytes(root);
  }
  return bytes;
}

void Executor::restore(bool finished) {
  const auto give_back = [&](ValueId value) {
    tape_.set_buffer(lowered_.recorded(value), storages_[graph_.storage(value)]);
  };
  if (finished) {
    for (const ValueId target : graph_.targets()) give_back(target);
  } else {
    for (ValueId value = 0; value < graph_.value_count(); ++value) {
      if (graph_.is_present(value) && written_[graph_.storage(value)] == 0) give_back(value);
    }
  }
  storages_.clear();
}

void Executor::run_serially() {
  for (std::uint32_t step = 0; step < program_.step_count(); ++step) run_step(step);
}

void Executor::run_in_parallel() {
  const std::uint32_t count = program_.step_count();
  std::vector<std::atomic<std::uint32_t>> waiting(count);
  for (std::uint32_t step = 0; step < count; ++step) {
    waiting[step].store(program_.predecessor_count(step), std::memory_order_relaxed);
  }
  std::atomic<bool> failed = false;
  std::exception_ptr failure;
  std::mutex failure_mutex;
  tbb::task_group tasks;

  // Runs a step and then, on this thread, steps it made ready; those worth it are offered to all
  // threads. A loop, so that a chain of a million steps needs no stack.
  const auto follow = [&](auto&& self, std::uint32_t first) -> void {
    std::vector<std::uint32_t> ready{first};
    while (!ready.empty() && !failed.load(std::memory_order_relaxed)) {
      const std::uint32_t step = ready.back();
      ready.pop_back();
      try {
        run_step(step);
      } catch (...) {
        const std::lock_guard lock(failure_mutex);
        if (!failed.exchange(true)) failure = std::current_exception();
        return;
      }
      for (const std::uint32_t successor : program_.successors(step)) {
        if (waiting[successor].fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
        if (ready.empty() || !worth_a_task(successor)) {
          ready.push_back(successor);
        } else {
          tasks.run([&self, successor] { self(self, successor); });
        }
      }
    }
  };
  for (std::uint32_t step = 0; step < count; ++step) {
    if (program_.predecessor_count(step) == 0) {
      tasks.run([&follow, step] { follow(follow, step); });
    }
  }
  tasks.wait();
  if (failure != nullptr) std::rethrow_exception(failure);
}

bool Executor::worth_a_task(std::uint32_t step) const {
  // Handing a step to another thread takes a microsecond or two.
  constexpr double seconds = 5e-6;
  const Step& action = plan_.schedule.steps[step];
  return action.kind == Step::Kind::compute && graph_.cost(action.id) >= seconds;
}

void Executor::run_step(std::uint32_t step) {
  const Step& action = plan_.schedule.steps[step];
  if (action.kind == Step::Kind::compute) {
    compute(step, action.id);
  } else if (const std::uint32_t interval = program_.closed(step); interval != none) {
    storages_[plan_.layout.intervals[interval].storage].reset();
  }
}

Buffer Executor::make(std::uint32_t interval) const {
  const Interval& place = plan_.layout.intervals[interval];
  return arena_ != nullptr ? arena_->cut(place.offset, place.bytes) : meter_.allocate(place.bytes);
}

void Executor::compute(std::uint32_t step, NodeId node) {
  Event& event = events_[event_[step]];
  event.node = node;
  event.thread = thread_index();
  const auto now = [&] { return (std::chrono::steady_clock::now() - start_).count(); };
  for (const std::uint32_t interval : program_.opened(step)) {
    storages_[plan_.layout.intervals[interval].storage] = make(interval);
  }
  event.live = meter_.live();
  const NodeId recorded = lowered_.node(node);
  const TileProgram* fused = lowered_.program(node);
  const Operation& operation = tape_.operation(recorded);
  if (operation.view) {
    event.start = event.end = now();
    return;
  }
  std::vector<Operand> operands;
  operands.reserve(graph_.inputs(node).size() + graph_.output_count(node));
  for (const ValueId input : graph_.inputs(node)) {
    operands.push_back(
        {storages_[graph_.storage(input)].get(), tape_.type(lowered_.recorded(input))});
  }
  for (std::uint32_t i = 0; i < graph_.output_count(node); ++i) {
    const ValueId output = graph_.first_output(node) + i;
    // An empty value has no interval, but must be told from one that is not there.
    if (storages_[output] == nullptr) storages_[output] = allocate_buffer(0);
    written_[output] = 1;
    operands.push_back({storages_[output].get(), tape_.type(lowered_.recorded(output))});
  }
  Buffer workspace;
  std::size_t workspace_bytes = 0;
  if (const std::uint32_t interval = program_.workspace(step); interval != none) {
    workspace = make(interval);
    workspace_bytes = static_cast<std::size_t>(plan_.layout.intervals[interval].bytes);
  }
  event.live = meter_.live();
  const std::span<const Operand> all(operands);
  const auto inputs = all.first(graph_.inputs(node).size());
  const auto outputs = all.subspan(inputs.size());
  event.start = now();
  const std::span<std::byte> scratch(workspace.get(), workspace_bytes);
  if (fused != nullptr) {
    fused->run(tape_, inputs, outputs, scratch, threads_);
  } else {
    execute(operation, tape_.attributes(recorded), inputs, outputs, scratch, threads_);
  }
  event.end = now();
  if (anomaly_) check_finite(tape_, recorded, inputs, outputs);
}

}  // namespace palimpsest
