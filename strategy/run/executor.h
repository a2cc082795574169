#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "autodiff/run_control.h"
#include "autodiff/run_scope.h"
#include "checkpoint/arena.h"
#include "checkpoint/buffer_pool.h"
#include "strategy/base/event.h"
#include "strategy/compile/native/native_program.h"

namespace palimpsest {

/// Executes instructions. Planned values are computed nowhere else. Keeps what the next run can
/// reuse, so a run in an arena allocates no other memory. Use it from one thread at a time.
class Executor {
 public:
  struct Settings {
    int threads = 1;       ///< at most; 1 runs the steps in schedule order
    bool anomaly = false;  ///< stops when a kernel produces a NaN or an infinity
    bool profile = false;  ///< records events
    Round round = {};      ///< as in `KernelCall`
    /// Called after each step, by the thread that ran it. Null: no call.
    const std::function<void(std::uint32_t step)>* after_step = nullptr;
    RunControl* control = nullptr;  ///< stops and observes the run
    /// The run is a step of a larger run, whose progress does not count the steps of this one.
    bool is_step = false;
    NativeCode native = NativeCode::off;  ///< code for fused groups
  };

  /// Where values lie. With `arena`, all lie in it, and values of intervals open from the start
  /// must already be there. Otherwise each has its own storage, from `pool` or, without one, from
  /// `meter`.
  struct Memory {
    const Meter& meter;
    const Arena* arena = nullptr;
    BufferPool* pool = nullptr;
  };

  explicit Executor(std::shared_ptr<const Instructions> instructions);

  const Instructions& instructions() const { return *instructions_; }
  const std::shared_ptr<const Instructions>& shared_instructions() const { return instructions_; }

  /// Approximate bytes of this object, without its instructions.
  Bytes metadata_bytes() const;
  /// Bytes that a pool holds after a run in schedule order, if it never returns any to the system.
  Bytes pooled_bytes();

  /// The address of source `source` of the instructions, to be set before a run.
  std::byte*& source(std::size_t source) { return addresses_[instructions_->source_place(source)]; }
  void set_source(std::size_t source, std::byte* data) { this->source(source) = data; }
  void set_source(std::size_t source, const Buffer& buffer) { set_source(source, buffer.get()); }
  /// Before a run without an arena: sets the storage of an interval that is open from the start.
  void set_present(std::uint32_t interval, Buffer buffer);

  /// Runs every step. `tape` holds the attributes. When a kernel throws or an anomaly is found, the
  /// run stops and rethrows the exception.
  void run(const Tape& tape, const Memory& memory, const Settings& settings);

  /// Sets `Settings::control` of later calls of `run_again`.
  void set_control(RunControl* control) { settings_.control = control; }
  /// True if one function of native code carried out all steps of the last run.
  bool can_run_again() const { return can_run_again_; }
  /// Runs again as before, with other sources. Only if `can_run_again`.
  void run_again(Round round) {
    if (code_->is_complete()) {
      code_->run()(addresses_.data(), numbers_.data(), table_.data(), nullptr, nullptr);
    } else {
      run_others_again(round);
    }
  }

  /// The storage of a place that holds a value after a run. The place must not be a source.
  Buffer storage(Instructions::Place place) const;
  /// The address of a place during a run, after a step has opened it.
  std::byte* address(Instructions::Place place) const { return addresses_[place]; }
  /// After a run without an arena: releases the storage that it left.
  void forget();
  /// After a run that stopped: true if an interval that was open from the start was neither closed,
  /// written nor taken over.
  bool is_intact(std::uint32_t interval) const { return touched_[interval] == 0; }

  /// Peak of the last run. With an arena, the end of the highest occupied byte. With a pool, the
  /// most bytes held. Otherwise, the most live bytes.
  Bytes peak() const { return arena_ != nullptr ? highest_.load() : held_peak_; }
  /// Number of allocations from the system in the last run, not counting the arena.
  std::uint64_t allocations() const { return allocations_; }
  Bytes peak_live() const { return peak_live_.load(); }
  /// Notes that kernels made in the last run.
  const RunScope::Notes& notes() const { return notes_; }
  /// The native code of the instructions; null if no run has asked for it.
  const std::shared_ptr<NativeProgram>& native() const { return native_; }
  /// `Settings::native` of the last run.
  NativeCode native_mode() const { return settings_.native; }
  /// With `profile`: one event for each computed step, in order.
  const std::vector<Event>& events() const { return events_; }

 private:
  using Instruction = Instructions::Instruction;

  void begin();
  void lay_out(std::byte* start);
  void make_numbers();
  void find_code(bool is_same_program);
  void run_steps();
  void run_serially();
  bool runs_as_one() const;
  void run_as_one();
  void run_others_again(Round round);
  void call_code();
  void run_in_parallel();
  void run_step(std::uint32_t step);
  void compute(const Instruction& instruction);
  void run_epilogue(const Instruction& instruction, std::span<const Operand> inputs,
                    std::span<const Operand> outputs, std::span<std::byte> scratch);
  void profiled(const Instruction& instruction, Event& event);
  void open(std::uint32_t interval);
  void take_over(std::uint32_t interval);
  void close(std::uint32_t interval);

  /// Tells programs apart. Attributes on a tape neither change nor move unless nodes are added or
  /// removed, which changes the count or the epoch.
  struct Nodes {
    const TapeIdentity* tape = nullptr;
    std::uint32_t epoch = 0;
    NodeId count = 0;

    bool operator==(const Nodes&) const = default;
  };

  std::shared_ptr<const Instructions> instructions_;
  Nodes nodes_;  // that `numbers_` and `table_` were made for
  std::vector<Operand> operands_;
  std::vector<FusedKernel::Number> numbers_;  // numbers of fused groups
  std::vector<std::byte*> addresses_;         // by place
  std::byte* laid_out_at_ = nullptr;          // start of the arena that the addresses point into
  std::vector<Buffer> buffers_;               // by interval, without an arena
  std::vector<char> touched_;                 // by interval that is open from the start
  std::optional<Bytes> pooled_bytes_;
  std::shared_ptr<NativeProgram> native_;
  const MachineCode* code_ = nullptr;             // of `native_`; null while groups are interpreted
  std::vector<const void*> table_;                // of `code_`
  bool has_run_ = false;                          // `code_` has a function for the whole tape
  bool is_timed_ = false;                         // native code is compared with the interpreter
  bool can_run_again_ = false;                    // the last run was one call of its code
  std::optional<std::pair<Bytes, Bytes>> peaks_;  // live and highest, of a run in the arena
  std::vector<char> outside_;  // by interval, with a pool: its buffer is not from the pool
  std::vector<std::atomic<std::uint32_t>> waiting_;
  std::vector<std::uint32_t> event_;  // by step
  std::vector<Event> events_;
  std::chrono::steady_clock::time_point start_;

  // The current run.
  const Tape* tape_ = nullptr;
  const Meter* meter_ = nullptr;
  const Arena* arena_ = nullptr;
  BufferPool* pool_ = nullptr;
  Settings settings_;
  bool alone_ = true;  // no other thread runs steps
  std::optional<RunScope> scope_;
  RunScope::Notes notes_;
  std::atomic<Bytes> live_ = 0;
  std::atomic<Bytes> peak_live_ = 0;
  std::atomic<Bytes> highest_ = 0;
  Bytes held_peak_ = 0;
  std::atomic<std::uint64_t> opened_ = 0;  // without an arena
  std::uint64_t allocations_ = 0;
};

}  // namespace palimpsest
