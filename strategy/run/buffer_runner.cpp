#include "strategy/run/buffer_runner.h"

#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

namespace palimpsest {

BufferRunner::BufferRunner(BufferProgramPtr program, std::span<std::byte> memory)
    : program_(std::move(program)),
      memory_(memory.data()),
      arena_(memory.first(static_cast<std::size_t>(program_->workspace()))),
      executor_(program_->instructions()) {
  bind_constants(program_->tape());
  for (const std::size_t source : program_->arguments()) {
    const bool is_read = source != BufferProgram::unread;
    argument_at_.push_back(is_read ? &executor_.source(source) : &unread_);
  }
  for (const BufferProgram::Result& result : program_->results()) {
    const bool is_made = result.from == BufferProgram::Result::From::made;
    result_at_.push_back(is_made ? &executor_.source(result.place) : nullptr);
    only_makes_ = only_makes_ && is_made;
  }
  std::set<std::byte**> changeable(argument_at_.begin(), argument_at_.end());
  changeable.insert(result_at_.begin(), result_at_.end());
  changeable.erase(&unread_);
  changeable.erase(nullptr);
  changeable_.assign(changeable.begin(), changeable.end());
}

void BufferRunner::bind_constants(const Tape& tape) {
  const std::span<const ValueId> sources = executor_.instructions().sources();
  for (std::size_t k = 0; k < sources.size(); ++k) {
    if (tape.has_value(sources[k])) executor_.set_source(k, tape.buffer(sources[k]));
  }
}

void BufferRunner::run(std::span<std::byte* const> arguments, std::span<std::byte* const> results,
                       std::uint32_t round) {
  carry_out(program_->tape(), arguments, results, round, std::exchange(has_run_, true));
  is_bound_ = true;
}

void BufferRunner::run(const Tape& tape, std::span<std::byte* const> arguments,
                       std::span<std::byte* const> results, std::uint32_t round) {
  bind_constants(tape);
  carry_out(tape, arguments, results, round, false);
}

void BufferRunner::carry_out(const Tape& tape, std::span<std::byte* const> arguments,
                             std::span<std::byte* const> results, std::uint32_t round,
                             bool same_tape) {
  using From = BufferProgram::Result::From;
  for (std::size_t i = 0; i < arguments.size(); ++i) set_argument(i, arguments[i]);
  const std::span<const BufferProgram::Result> wanted = program_->results();
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (wanted[i].from == From::made) set_result(i, results[i]);
  }
  if (same_tape && executor_.can_run_again()) {
    executor_.run_again(round);
  } else {
    execute(tape, round, same_tape);
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    const BufferProgram::Result& result = wanted[i];
    const std::byte* from = nullptr;
    if (result.from == From::argument) from = arguments[result.place];
    if (result.from == From::result) from = results[result.place];
    if (result.from == From::constant) {
      from = tape.buffer(static_cast<ValueId>(result.place)).get();
    }
    if (from != nullptr && from != results[i]) std::memcpy(results[i], from, result.bytes);
  }
}

void BufferRunner::execute(const Tape& tape, std::uint32_t round, bool same_tape) {
  Executor::Settings settings;
  settings.threads = program_->threads();
  settings.anomaly = program_->looks_for_anomalies();
  settings.profile = program_->is_profiled();
  settings.round = round;
  settings.same_tape = same_tape;
  settings.after_step = after_step_;
  settings.control = control_;
  settings.is_step = !counts_steps_;
  settings.native = native_;
  if (executor_.instructions().any_long() && settings.threads > 1) {
    // A thread that waits in a step must not take other work, such as another loop, in the
    // meantime.
    tbb::this_task_arena::isolate([&] { executor_.run(tape, {meter_, &arena_}, settings); });
  } else {
    executor_.run(tape, {meter_, &arena_}, settings);
  }
}

}  // namespace palimpsest
