#include "strategy/run/executor.h"

#include <oneapi/tbb/task_group.h>

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>

#include "autodiff/execute.h"
#include "autodiff/parallel.h"
#include "autodiff/usable_threads.h"
#include "strategy/base/stopwatch.h"

namespace palimpsest {
namespace {

/// Adds to a count. The addition is atomic only if other threads add too.
Bytes add(std::atomic<Bytes>& count, Bytes bytes, bool alone) {
  constexpr auto relaxed = std::memory_order_relaxed;
  if (!alone) return count.fetch_add(bytes, relaxed) + bytes;
  const Bytes sum = count.load(relaxed) + bytes;
  count.store(sum, relaxed);
  return sum;
}

/// Raises `most` to at least `bytes`. Atomic only if other threads do so too.
void raise(std::atomic<Bytes>& most, Bytes bytes, bool alone) {
  constexpr auto relaxed = std::memory_order_relaxed;
  if (!alone) return raise_to(most, bytes);
  if (most.load(relaxed) < bytes) most.store(bytes, relaxed);
}

}  // namespace

Executor::Executor(std::shared_ptr<const Instructions> instructions)
    : instructions_(std::move(instructions)),
      operands_(instructions_->operands().begin(), instructions_->operands().end()),
      numbers_(instructions_->number_count()),
      addresses_(instructions_->place_count()),
      buffers_(instructions_->open_at_start()),
      touched_(instructions_->open_at_start()) {
  alignas(buffer_alignment) static std::byte nothing[buffer_alignment];
  addresses_[instructions_->empty_place()] = nothing;
}

Bytes Executor::metadata_bytes() const {
  const std::size_t bytes = operands_.size() * sizeof(Operand) +
                            instructions_->place_count() * sizeof(Interval) +
                            instructions_->steps().size() * sizeof(std::uint32_t);
  return static_cast<Bytes>(bytes);
}

Bytes Executor::pooled_bytes() {
  if (pooled_bytes_) return *pooled_bytes_;
  const std::span<const Interval> intervals = instructions_->intervals();
  std::map<Bytes, std::int64_t> kept;  // by size
  Bytes bytes = instructions_->present_bytes();
  const auto open = [&](std::uint32_t interval) {
    if (intervals[interval].takes_over != none) return;
    const Bytes size = aligned(intervals[interval].bytes);
    std::int64_t& free = kept[size];
    if (free > 0) {
      --free;
    } else {
      bytes += size;
    }
  };
  const auto close = [&](std::uint32_t interval) { ++kept[aligned(intervals[interval].bytes)]; };
  for (std::uint32_t step = 0; step < instructions_->steps().size(); ++step) {
    const Instruction& instruction = instructions_->steps()[step];
    std::ranges::for_each(instructions_->dependencies().opened(step), open);
    if (instruction.workspace != none) {
      open(instruction.workspace);
      close(instruction.workspace);
    }
    if (instruction.closed != none) close(instruction.closed);
  }
  pooled_bytes_ = bytes;
  return bytes;
}

void Executor::set_present(std::uint32_t interval, Buffer buffer) {
  addresses_[interval] = buffer.get();
  buffers_[interval] = std::move(buffer);
}

void Executor::run(const Tape& tape, const Memory& memory, const Settings& settings) {
  can_run_again_ = false;
  tape_ = &tape;
  meter_ = &memory.meter;
  arena_ = memory.arena;
  pool_ = memory.pool;
  settings_ = settings;
  alone_ = settings_.threads == 1 || !instructions_->any_long();
  begin();
  scope_.emplace(settings_.control, settings_.is_step ? RunScope::Of::step : RunScope::Of::run,
                 static_cast<std::uint8_t>(settings_.native), settings_.anomaly);
  const auto end = [&] {
    if (arena_ != nullptr) arena_->note(peak_live_, highest_);
    held_peak_ = pool_ != nullptr ? pool_->peak() : peak_live();
    allocations_ = pool_ != nullptr ? pool_->allocations() : opened_.load();
    notes_ = scope_->take_notes();
    scope_.reset();
  };
  try {
    if (is_timed_) {
      const Stopwatch running;
      run_steps();
      native_->add_time(code_, running.seconds());
    } else {
      run_steps();
    }
  } catch (...) {
    end();
    throw;
  }
  end();
}

void Executor::run_steps() {
  if (runs_as_one()) {
    run_as_one();
  } else if (alone_) {
    run_serially();
  } else {
    run_in_parallel();
  }
}

void Executor::begin() {
  opened_ = 0;
  const TapeIdentity& tape = tape_->identity();
  const Nodes nodes{&tape, tape.epoch(), tape_->node_count()};
  const bool is_same_program = nodes == nodes_;
  nodes_ = {};
  if (!is_same_program) make_numbers();
  find_code(is_same_program);
  nodes_ = nodes;
  std::fill(touched_.begin(), touched_.end(), 0);
  const std::span<const Interval> intervals = instructions_->intervals();
  if (arena_ != nullptr) {
    arena_->note(0, instructions_->arena_size());
    lay_out(arena_->at(0));
  } else {
    buffers_.resize(intervals.size());
    laid_out_at_ = nullptr;
    if (pool_ != nullptr) {
      outside_.assign(intervals.size(), 0);
      std::fill_n(outside_.begin(), instructions_->open_at_start(), 1);
    }
  }
  constexpr auto relaxed = std::memory_order_relaxed;
  Bytes live = 0;
  Bytes highest = 0;
  for (const Interval& interval : intervals.first(instructions_->open_at_start())) {
    live += interval.bytes;
    highest = std::max(highest, interval.offset + interval.bytes);
  }
  live_.store(live, relaxed);
  peak_live_.store(live, relaxed);
  highest_.store(highest, relaxed);
  events_.clear();
  if (!settings_.profile) return;
  event_.assign(instructions_->steps().size(), none);
  std::uint32_t computes = 0;
  for (std::uint32_t step = 0; step < event_.size(); ++step) {
    if (instructions_->steps()[step].unit != none) event_[step] = computes++;
  }
  events_.resize(computes);
  start_ = std::chrono::steady_clock::now();
}

void Executor::lay_out(std::byte* start) {
  if (laid_out_at_ == start) return;
  laid_out_at_ = start;
  const std::span<const Interval> intervals = instructions_->intervals();
  for (std::size_t i = 0; i < intervals.size(); ++i) addresses_[i] = start + intervals[i].offset;
}

void Executor::make_numbers() {
  for (const Instruction& instruction : instructions_->steps()) {
    if (instruction.group == nullptr) continue;
    instruction.group->make_numbers(*tape_, std::span(numbers_).subspan(instruction.first_number));
  }
}

void Executor::find_code(bool is_same_program) {
  const MachineCode* code = nullptr;
  is_timed_ = false;
  if (settings_.native == NativeCode::off) native_ = nullptr;
  if (settings_.native != NativeCode::off && !settings_.anomaly) {
    if (native_ == nullptr) native_ = NativeProgram::of(*instructions_);
    const auto ask = [&] {
      return native_->service_for(*instructions_, *tape_, settings_.native, settings_.control);
    };
    NativeProgram::Service service = ask();
    const auto is_new = [&] {
      return service.code != nullptr && (service.code != code_ || !is_same_program);
    };
    if (is_new() && !service.code->fits(numbers_)) {
      native_->retire(*service.code);
      service = ask();
    }
    code = service.code;
    is_timed_ = service.is_timed && !settings_.profile && settings_.after_step == nullptr;
    if (is_new()) {
      code->fill_table(*tape_, table_);
      has_run_ = code->runs(*tape_);
    }
  }
  code_ = code;
}

/// True if one function carries out all instructions. A whole program goes from instruction to
/// instruction if it is watched or can be stopped.
bool Executor::runs_as_one() const {
  return alone_ && code_ != nullptr && has_run_ &&
         (settings_.is_step || settings_.control == nullptr) && arena_ != nullptr &&
         touched_.empty() && !settings_.profile && settings_.after_step == nullptr;
}

void Executor::run_as_one() {
  if (!peaks_) {
    Bytes live = 0;
    Bytes peak = 0;
    Bytes highest = 0;
    const std::span<const Interval> intervals = instructions_->intervals();
    const auto open = [&](std::uint32_t interval) {
      const Interval& place = intervals[interval];
      if (place.takes_over != none) return;
      live += place.bytes;
      peak = std::max(peak, live);
      highest = std::max(highest, place.offset + place.bytes);
    };
    for (std::uint32_t step = 0; step < instructions_->steps().size(); ++step) {
      const Instruction& instruction = instructions_->steps()[step];
      std::ranges::for_each(instructions_->dependencies().opened(step), open);
      if (instruction.workspace != none) {
        open(instruction.workspace);
        live -= intervals[instruction.workspace].bytes;
      }
      if (instruction.closed != none) live -= intervals[instruction.closed].bytes;
    }
    peaks_.emplace(peak, highest);
  }
  peak_live_.store(peaks_->first, std::memory_order_relaxed);
  highest_.store(peaks_->second, std::memory_order_relaxed);
  call_code();
  can_run_again_ = !is_timed_;
}

void Executor::call_code() {
  const auto step = [](void* executor, std::uint32_t index) {
    auto& self = *static_cast<Executor*>(executor);
    self.compute(self.instructions_->steps()[index]);
  };
  code_->run()(addresses_.data(), numbers_.data(), table_.data(), step, this);
}

/// The code calls `compute`, whose kernels need a scope and a round.
void Executor::run_others_again(Round round) {
  settings_.round = round;
  scope_.emplace(settings_.control, RunScope::Of::step,
                 static_cast<std::uint8_t>(settings_.native));
  try {
    call_code();
  } catch (...) {
    can_run_again_ = false;
    notes_ = scope_->take_notes();
    scope_.reset();
    throw;
  }
  notes_ = scope_->take_notes();
  scope_.reset();
}

void Executor::run_serially() {
  const auto count = static_cast<std::uint32_t>(instructions_->steps().size());
  for (std::uint32_t step = 0; step < count; ++step) run_step(step);
}

void Executor::run_in_parallel() {
  const std::span<const Instruction> steps = instructions_->steps();
  const Dependencies& dependencies = instructions_->dependencies();
  if (waiting_.empty()) waiting_ = std::vector<std::atomic<std::uint32_t>>(steps.size());
  for (std::uint32_t step = 0; step < steps.size(); ++step) {
    waiting_[step].store(dependencies.predecessor_count(step), std::memory_order_relaxed);
  }
  std::atomic<bool> failed = false;
  std::exception_ptr failure;
  std::mutex failure_mutex;
  tbb::task_group tasks;

  // Runs a step and then, on this thread, the steps that became ready. Long ones are offered to all
  // threads. It is a loop, since a chain may have a million steps and must not use the stack.
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
      for (const std::uint32_t successor : dependencies.successors(step)) {
        if (waiting_[successor].fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
        if (ready.empty() || !steps[successor].is_long) {
          ready.push_back(successor);
        } else {
          tasks.run([&self, successor] { self(self, successor); });
        }
      }
    }
  };
  run_group(tasks, [&] {
    for (std::uint32_t step = 0; step < steps.size(); ++step) {
      if (dependencies.predecessor_count(step) == 0) {
        tasks.run([&follow, step] { follow(follow, step); });
      }
    }
  });
  if (failure != nullptr) std::rethrow_exception(failure);
}

void Executor::run_step(std::uint32_t step) {
  if (settings_.control != nullptr) settings_.control->check();
  const Instruction& instruction = instructions_->steps()[step];
  for (const std::uint32_t interval : instructions_->dependencies().opened(step)) open(interval);
  if (instruction.workspace != none) open(instruction.workspace);
  if (settings_.profile && instruction.unit != none) {
    profiled(instruction, events_[event_[step]]);
  } else if (instruction.operation != nullptr) {
    compute(instruction);
  }
  if (instruction.workspace != none) close(instruction.workspace);
  if (instruction.closed != none) close(instruction.closed);
  if (settings_.after_step != nullptr) (*settings_.after_step)(step);
  if (settings_.control != nullptr && !settings_.is_step) settings_.control->step_done();
}

void Executor::profiled(const Instruction& instruction, Event& event) {
  const auto now = [&] { return (std::chrono::steady_clock::now() - start_).count(); };
  event.node = instruction.unit;
  event.thread = thread_index();
  event.live = live_.load(std::memory_order_relaxed);
  event.start = now();
  if (instruction.operation != nullptr) compute(instruction);
  event.end = now();
}

void Executor::compute(const Instruction& instruction) {
  const std::size_t count = instruction.inputs + instruction.outputs;
  const std::span<Operand> operands =
      std::span(operands_).subspan(instruction.first_operand, count);
  const auto places = instructions_->places().subspan(instruction.first_operand, count);
  for (std::size_t k = 0; k < count; ++k) operands[k].data = addresses_[places[k]];
  const std::span<const Operand> inputs = operands.first(instruction.inputs);
  const std::span<const Operand> outputs = operands.subspan(instruction.inputs);
  for (const Instructions::Place place : places.subspan(instruction.inputs)) {
    if (place < touched_.size()) touched_[place] = 1;
  }
  std::span<std::byte> scratch;
  if (const std::uint32_t workspace = instruction.workspace; workspace != none) {
    const Bytes bytes = instructions_->intervals()[workspace].bytes;
    scratch = {addresses_[workspace], static_cast<std::size_t>(bytes)};
  }
  if (instruction.group != nullptr) {
    const auto numbers = std::span(numbers_).subspan(instruction.first_number);
    FusedKernel::Compiled compiled{};
    if (code_ != nullptr) {
      const auto step = static_cast<std::size_t>(&instruction - instructions_->steps().data());
      compiled = {code_->group(step), table_.data() + code_->first_entry(step)};
    }
    instruction.group->run(*tape_, inputs, outputs, numbers, scratch, settings_.threads,
                           compiled.code != nullptr ? &compiled : nullptr);
  } else if (instruction.accumulates) {
    instruction.operation->accumulate({tape_->attributes(instruction.node), inputs, outputs,
                                       scratch, settings_.threads, settings_.round});
  } else if (instruction.epilogue != nullptr) {
    run_epilogue(instruction, inputs, outputs, scratch);
  } else {
    const Attributes& attributes =
        instruction.given != nullptr ? *instruction.given : tape_->attributes(instruction.node);
    const Operation& operation =
        instruction.is_of_user ? tape_->operation(instruction.node) : *instruction.operation;
    execute(operation, {attributes, inputs, outputs, scratch, settings_.threads, settings_.round,
                        nullptr, &*scope_});
  }
  if (settings_.anomaly) check_finite(*tape_, instruction.node, inputs, outputs);
}

void Executor::run_epilogue(const Instruction& instruction, std::span<const Operand> inputs,
                            std::span<const Operand> outputs, std::span<std::byte> scratch) {
  const auto& [node, maker, made] = *instruction.epilogue;
  const NodeView view(tape_->nodes(), node);
  const std::size_t of_maker = tape_->inputs(maker).size();
  const std::int64_t size = size_of(outputs[0].dtype());
  EpilogueKernel epilogue{view.operation().pointwise(view).run,
                          {tape_->attributes(node), {}, {}, outputs[0].data, 0},
                          {},
                          size};
  std::size_t other = of_maker;
  for (std::size_t i = 0; i < view.input_count(); ++i) {
    const Operand& operand = i == made ? outputs[0] : inputs[other++];
    epilogue.whole.inputs[i] = operand.data;
    epilogue.whole.steps[i] = 1;
    epilogue.bytes[i] = size_of(operand.dtype());
  }
  instruction.operation->compute({tape_->attributes(maker), inputs.first(of_maker), outputs,
                                  scratch, settings_.threads, settings_.round, &epilogue});
}

void Executor::open(std::uint32_t interval) {
  const Interval& place = instructions_->intervals()[interval];
  if (place.takes_over != none) return take_over(interval);
  if (arena_ == nullptr) {
    buffers_[interval] =
        pool_ != nullptr ? pool_->allocate(place.bytes) : meter_->allocate(place.bytes);
    opened_.fetch_add(1, std::memory_order_relaxed);
    addresses_[interval] = buffers_[interval].get();
  }
  raise(highest_, place.offset + place.bytes, alone_);
  raise(peak_live_, add(live_, place.bytes, alone_), alone_);
}

/// Both intervals are one buffer, whose bytes are already counted.
void Executor::take_over(std::uint32_t interval) {
  const std::uint32_t before = instructions_->intervals()[interval].takes_over;
  if (before < touched_.size()) touched_[before] = 1;
  if (arena_ != nullptr) return;
  if (pool_ != nullptr) outside_[interval] = outside_[before];
  buffers_[interval] = std::move(buffers_[before]);
  addresses_[interval] = buffers_[interval].get();
}

void Executor::close(std::uint32_t interval) {
  if (arena_ == nullptr) {
    buffers_[interval].reset();
    const Bytes bytes = instructions_->intervals()[interval].bytes;
    if (pool_ != nullptr && outside_[interval] != 0) pool_->release_outside(bytes);
  }
  if (interval < touched_.size()) touched_[interval] = 1;
  add(live_, -instructions_->intervals()[interval].bytes, alone_);
}

Buffer Executor::storage(Instructions::Place place) const {
  if (place == instructions_->empty_place()) return allocate_buffer(0);
  const Interval& interval = instructions_->intervals()[place];
  return arena_ != nullptr ? arena_->cut(interval.offset, interval.bytes) : buffers_[place];
}

void Executor::forget() { buffers_.assign(buffers_.size(), nullptr); }

}  // namespace palimpsest
