#include "strategy/compile/native/native_program.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "strategy/compile/compile_log.h"
#include "strategy/compile/native/compiling_thread.h"

namespace palimpsest {
namespace {

/// Interpreting an instruction takes at least this long, whatever is predicted for its elements.
constexpr double least_seconds = 1e-7;
/// Code pays when runs have interpreted groups for so long, in seconds for a program and for each
/// kind of its groups. A processor that would be idle compiles, so that this counts for less.
constexpr double seconds_of_program = 0.5;
constexpr double seconds_of_group = 1e-3;

std::string microseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g µs", 1e6 * seconds);
  return text;
}

NativeCode of_environment() {
  const char* const word = std::getenv("PALIMPSEST_NATIVE");
  if (word == nullptr || *word == '\0') return NativeCode::automatic;
  for (const NativeCode mode : {NativeCode::off, NativeCode::automatic, NativeCode::at_once}) {
    if (name_of(mode) == word) return mode;
  }
  throw ArgumentError("[native] PALIMPSEST_NATIVE is " + std::string(word) +
                      "; use one of off, automatic, at_once");
}

}  // namespace

NativeCode decided(NativeCode mode) {
  if (mode != NativeCode::automatic) return mode;
  static const NativeCode automatic = of_environment();
  return automatic;
}

NativeProgram::NativeProgram(const Instructions& instructions) {
  const Graph& graph = instructions.lowered().graph();
  std::set<std::pair<std::string_view, std::uint64_t>> groups;  // equal ones are compiled once
  for (const Instructions::Instruction& step : instructions.steps()) {
    if (step.operation == nullptr) continue;
    const double seconds = std::max(graph.cost(step.unit), least_seconds);
    seconds_ += seconds;
    if (step.group == nullptr) continue;
    group_seconds_ += seconds;
    groups.emplace(graph.name(step.unit), step.group->layout_hash());
  }
  is_decided_ = groups.empty();
  is_settled_ = groups.empty();
  paying_runs_ = (seconds_of_program + seconds_of_group * static_cast<double>(groups.size())) /
                 std::max(group_seconds_, least_seconds);
}

std::shared_ptr<NativeProgram> NativeProgram::of(const Instructions& instructions) {
  return std::static_pointer_cast<NativeProgram>(
      instructions.attachment([&] { return std::make_shared<NativeProgram>(instructions); }));
}

const MachineCode* NativeProgram::made_at_once(const Instructions& instructions, const Tape& tape,
                                               const RunControl* control) {
  if (!is_decided_.load(std::memory_order_relaxed) && prepare(instructions, tape)) {
    make({.stop = control != nullptr ? control->stop_token() : std::stop_token()});
  }
  return code();
}

NativeProgram::Service NativeProgram::count(const Instructions& instructions, const Tape& tape) {
  if (const MachineCode* const made = code()) {
    const std::lock_guard lock(mutex_);
    return {trial_.next_is_native() ? made : nullptr, true};
  }
  const auto runs = static_cast<double>(runs_.fetch_add(1, std::memory_order_relaxed) + 1);
  const bool is_timed = 2 * runs >= paying_runs_;
  if (runs < paying_runs_ || is_decided_.load(std::memory_order_relaxed))
    return {nullptr, is_timed};
  if (prepare(instructions, tape)) {
    try {
      compile_later(shared_from_this());
    } catch (const std::exception& error) {  // there may be no more threads
      fail(error.what());
    }
  }
  return {nullptr, is_timed};
}

void NativeProgram::retire(const MachineCode& code) {
  const std::lock_guard lock(mutex_);
  if (code_.get() != &code) return;  // another run has done so
  retired_ = std::move(code_);
  problem_.clear();
  ready_ = nullptr;
  chosen_ = nullptr;
  is_settled_ = false;
  is_decided_ = false;
  trial_ = {};
}

void NativeProgram::add_time(const MachineCode* code, double seconds) {
  const std::lock_guard lock(mutex_);
  const bool is_of_retired = code != nullptr && code != code_.get();
  if (is_settled_.load(std::memory_order_relaxed) || is_of_retired) return;
  trial_.add(code != nullptr, seconds);
  if (trial_.outcome() == SpeedTrial::Outcome::open) return;
  if (trial_.outcome() == SpeedTrial::Outcome::native) {
    chosen_.store(code_.get(), std::memory_order_release);
  } else {
    problem_ = "native code is slower: " + microseconds(trial_.native_seconds()) +
               " a run, interpreted " + microseconds(trial_.interpreted_seconds());
  }
  is_settled_.store(true, std::memory_order_relaxed);
}

/// Writes the source. Returns true if the caller is to have it compiled.
bool NativeProgram::prepare(const Instructions& instructions, const Tape& tape) {
  const std::lock_guard lock(mutex_);
  if (is_decided_) return false;
  is_decided_ = true;
  const bool literals = retired_ == nullptr;
  source_ = program_source(instructions, tape, {.literals = literals});
  const std::optional<DumpLevel> level = dump_level_of_environment();
  if (level == DumpLevel::native || level == DumpLevel::all) {
    write_dump(program_source(instructions, tape, {.comments = true, .literals = literals}).text);
  }
  if (source_.text.empty()) {
    problem_ = std::move(source_.problem);
    is_settled_ = true;
    return false;
  }
  double seconds = 0;
  std::set<const FusedKernel*> groups;  // some run more than once
  std::set<const FusedKernel*> others;
  for (std::size_t step = 0; step < source_.groups.size(); ++step) {
    const FusedKernel* const group = instructions.steps()[step].group;
    if (source_.groups[step].name.empty()) {
      if (group != nullptr) others.insert(group);
      continue;
    }
    groups.insert(group);
    const NodeId unit = instructions.steps()[step].unit;
    seconds += std::max(instructions.lowered().graph().cost(unit), least_seconds);
  }
  groups_ = static_cast<std::uint32_t>(groups.size());
  if (!others.empty()) {
    interpreted_groups_ = std::to_string(others.size()) + " of " +
                          std::to_string(groups.size() + others.size()) +
                          " groups: " + source_.problem;
  }
  share_ = seconds / seconds_;
  return true;
}

void NativeProgram::load(const CompilePriority& priority) {
  LoadedLibrary loaded = load_library(source_.text, priority, source_.names());
  const std::lock_guard lock(mutex_);
  if (loaded.library == nullptr) {
    problem_ = std::move(loaded.problem);
    const bool is_stopped = priority.stop.stop_requested();
    is_decided_ = !is_stopped;
    is_settled_ = !is_stopped;
    return;
  }
  code_ = std::make_unique<const MachineCode>(std::move(source_), std::move(loaded));
  source_ = {};
  ready_.store(code_.get(), std::memory_order_release);
}

void NativeProgram::make(const CompilePriority& priority) {
  try {
    load(priority);
  } catch (const std::exception& error) {  // memory may be short
    fail(error.what());
  }
}

void NativeProgram::fail(std::string problem) {
  const std::lock_guard lock(mutex_);
  problem_ = std::move(problem);
  is_settled_ = true;
}

NativeProgram::Facts NativeProgram::facts(NativeCode mode) const {
  const std::lock_guard lock(mutex_);
  Facts facts;
  const bool is_slower =
      mode != NativeCode::at_once && trial_.outcome() == SpeedTrial::Outcome::interpreter;
  facts.serves = code_ != nullptr && !is_slower;
  facts.has_run = code_ != nullptr && code_->run() != nullptr;
  for (const MachineCode* const code : {code_.get(), retired_.get()}) {
    if (code == nullptr) continue;
    facts.code += code->bytes();
    facts.compile_seconds += code->compile_seconds();
  }
  if (facts.serves) {
    facts.groups = groups_;
    facts.share = share_;
  }
  facts.seconds = trial_.native_seconds();
  if (facts.seconds > 0) facts.interpreted_seconds = trial_.interpreted_seconds();
  facts.problem = facts.serves ? interpreted_groups_ : problem_;
  return facts;
}

}  // namespace palimpsest
