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
  find_places();
  bind_constants(program_->tape());
  std::set<std::byte**> changeable(argument_at_.begin(), argument_at_.end());
  changeable.insert(result_at_.begin(), result_at_.end());
  changeable.erase(&unread_);
  changeable_.assign(changeable.begin(), changeable.end());
}

/// Finds where the addresses of arguments and results are written.
void BufferRunner::find_places() {
  using From = BufferProgram::Result::From;
  for (const std::size_t source : program_->arguments()) {
    const bool is_read = source != BufferProgram::unread;
    argument_at_.push_back(is_read ? &executor_.source(source) : &unread_);
  }
  const std::span<const BufferProgram::Result> results = program_->results();
  copies_.reserve(results.size());  // places in it stay
  for (const auto& [from, place, bytes] : results) {
    if (from == From::made) {
      result_at_.push_back(&executor_.source(place));
      continue;
    }
    Copy& copy = copies_.emplace_back(Copy{nullptr, nullptr, nullptr, bytes});
    copy.from = &copy.own_from;
    if (from == From::argument) copy.from = argument_at_[place];
    if (from == From::result && bytes > 0) copy.from = result_at_[place];
    result_at_.push_back(&copy.to);
  }
}

void BufferRunner::move_to(std::span<std::byte> memory) {
  memory_ = memory.data();
  arena_ = Arena(memory.first(static_cast<std::size_t>(program_->workspace())));
  has_run_ = false;
  is_bound_ = false;
}

void BufferRunner::bind_constants(const Tape& tape) {
  auto copy = copies_.begin();
  for (const auto& [from, place, bytes] : program_->results()) {
    if (from == BufferProgram::Result::From::made) continue;
    if (from == BufferProgram::Result::From::constant) {
      copy->own_from = tape.buffer(static_cast<ValueId>(place)).get();
    }
    ++copy;
  }
  const std::span<const ValueId> sources = executor_.instructions().sources();
  for (std::size_t k = 0; k < sources.size(); ++k) {
    if (tape.has_value(sources[k])) executor_.set_source(k, tape.buffer(sources[k]));
  }
}

void BufferRunner::run(std::span<std::byte* const> arguments, std::span<std::byte* const> results,
                       Round round) {
  carry_out(program_->tape(), arguments, results, round, has_run_);
  has_run_ = true;
  is_bound_ = true;
}

void BufferRunner::run(const Tape& tape, std::span<std::byte* const> arguments,
                       std::span<std::byte* const> results, Round round) {
  has_run_ = false;
  is_bound_ = false;
  bind_constants(tape);
  carry_out(tape, arguments, results, round, false);
}

void BufferRunner::carry_out(const Tape& tape, std::span<std::byte* const> arguments,
                             std::span<std::byte* const> results, Round round, bool may_repeat) {
  for (std::size_t i = 0; i < arguments.size(); ++i) set_argument(i, arguments[i]);
  for (std::size_t i = 0; i < results.size(); ++i) set_result(i, results[i]);
  if (may_repeat && executor_.can_run_again()) {
    executor_.run_again(round);
  } else {
    execute(tape, round);
  }
  copy_others();
}

void BufferRunner::copy_others() const {
  for (const Copy& copy : copies_) {
    if (copy.bytes > 0 && *copy.from != copy.to) std::memcpy(copy.to, *copy.from, copy.bytes);
  }
}

void BufferRunner::execute(const Tape& tape, Round round) {
  Executor::Settings settings;
  settings.threads = program_->threads();
  settings.anomaly = program_->looks_for_anomalies();
  settings.profile = program_->is_profiled();
  settings.round = round;
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
