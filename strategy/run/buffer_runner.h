#pragma once

#include <functional>
#include <memory>
#include <span>

#include "strategy/compile/buffer_program.h"
#include "strategy/run/address_row.h"
#include "strategy/run/executor.h"

namespace palimpsest {

/// Runs a program on buffers repeatedly. Use it from one thread at a time.
class BufferRunner {
 public:
  /// `memory` holds `program->workspace()` bytes, is aligned to 64 bytes and must outlive the
  /// runner.
  BufferRunner(BufferProgramPtr program, std::span<std::byte> memory);
  BufferRunner(const BufferRunner&) = delete;
  BufferRunner& operator=(const BufferRunner&) = delete;

  /// `arguments` and `results` hold one address for each argument and result of the program. No
  /// result may overlap another result, or an argument over which it may not be written
  /// (`BufferProgram::may_write_over`).
  void run(std::span<std::byte* const> arguments, std::span<std::byte* const> results, Round round);
  /// Likewise, with the constants and attributes of another tape of the same structure.
  void run(const Tape& tape, std::span<std::byte* const> arguments,
           std::span<std::byte* const> results, Round round);

  /// True if `repeat` may be called: the last run was one call of native code.
  bool may_repeat() const { return is_bound_ && executor_.can_run_again(); }
  /// Before `repeat`: sets the address of an argument or of a result.
  void set_argument(std::size_t position, std::byte* data) { *argument_at_[position] = data; }
  void set_result(std::size_t position, std::byte* data) { *result_at_[position] = data; }
  /// Runs again with the same attributes, and with the same arguments and results except for those
  /// that were set.
  void repeat(Round round) {
    executor_.run_again(round);
    copy_others();
  }
  /// Repeats three or more runs whose addresses are as in an `AddressRow`. `set(i)` sets those of
  /// run i; it is called for the first three. `begin(i)` is called before run i, and returns its
  /// round.
  template <class Set, class Begin>
  void repeat_in_a_row(std::uint32_t count, const Set& set, const Begin& begin) {
    row_.learn(changeable_, set);
    for (std::uint32_t i = 0; i < count; ++i) {
      const Round round = begin(i);
      row_.next();
      repeat(round);
    }
  }

  /// Sets `Executor::Settings::after_step` for later runs.
  void set_after_step(const std::function<void(std::uint32_t)>* after_step) {
    after_step_ = after_step;
  }
  /// Sets the control of later runs; null for none. It counts their steps with `counts_steps`.
  void set_control(RunControl* control, bool counts_steps = false) {
    control_ = control;
    counts_steps_ = counts_steps;
    executor_.set_control(control);
  }

  /// Sets `Executor::Settings::native`, before the first run.
  void set_native(NativeCode native) { native_ = native; }

  /// True if its program and its choice of native code are these.
  bool serves(const BufferProgramPtr& program, NativeCode native) const {
    return program_ == program && native_ == native;
  }
  bool is_in(std::span<std::byte> memory) const { return memory_ == memory.data(); }
  /// Moves it to other memory, as in the constructor.
  void move_to(std::span<std::byte> memory);
  /// The next run must be given all addresses.
  void forget_addresses() { is_bound_ = false; }

  /// Measurements of the last run.
  const Executor& executor() const { return executor_; }

 private:
  /// A result that no instruction makes.
  struct Copy {
    std::byte** from;     // the place of the address, which is that of an argument or a result
    std::byte* own_from;  // the address of a constant
    std::byte* to;
    std::size_t bytes;
  };
  void find_places();
  void bind_constants(const Tape& tape);
  void carry_out(const Tape& tape, std::span<std::byte* const> arguments,
                 std::span<std::byte* const> results, Round round, bool may_repeat);
  void execute(const Tape& tape, Round round);
  void copy_others() const;

  BufferProgramPtr program_;
  std::byte* memory_;
  Arena arena_;
  Meter meter_;  // counts nothing: everything lies in the arena
  Executor executor_;
  std::vector<std::byte**> argument_at_;  // where the executor looks for their addresses
  std::vector<std::byte**> result_at_;
  std::vector<Copy> copies_;             // in the order of the results
  std::byte* unread_ = nullptr;          // address of an argument that the program does not read
  std::vector<std::byte**> changeable_;  // without repetitions: those of both lists that are used
  AddressRow row_;
  bool has_run_ = false;   // in this memory, and the last time with the program's own tape
  bool is_bound_ = false;  // the arguments and results of the last run are still there
  const std::function<void(std::uint32_t)>* after_step_ = nullptr;
  RunControl* control_ = nullptr;
  bool counts_steps_ = false;
  NativeCode native_ = NativeCode::off;
};

}  // namespace palimpsest
