#include "strategy/compile/native/native_program.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <optional>
#include <set>
#include <utility>

#include "strategy/compile/compile_log.h"
#include "strategy/compile/native/compiling_thread.h"

namespace palimpsest {
namespace {

/// Interpreting an instruction takes at least this long, whatever is predicted for its elements.
constexpr double least_seconds = 1e-7;
/// Code pays when runs have interpreted groups for so long: about as long as compiling takes, in
/// seconds for a program and for each of its groups.
constexpr double seconds_of_program = 0.5;
constexpr double seconds_of_group = 1e-3;

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
  std::size_t groups = 0;
  for (const Instructions::Instruction& step : instructions.steps()) {
    if (step.operation == nullptr) continue;
    const double seconds = std::max(graph.cost(step.unit), least_seconds);
    seconds_ += seconds;
    if (step.group == nullptr) continue;
    group_seconds_ += seconds;
    ++groups;
  }
  is_decided_ = groups == 0;
  paying_runs_ = (seconds_of_program + seconds_of_group * static_cast<double>(groups)) /
                 std::max(group_seconds_, least_seconds);
}

std::shared_ptr<NativeProgram> NativeProgram::of(const Instructions& instructions) {
  return std::static_pointer_cast<NativeProgram>(
      instructions.attachment([&] { return std::make_shared<NativeProgram>(instructions); }));
}

const MachineCode* NativeProgram::count(const Instructions& instructions, const Tape& tape,
                                        NativeCode mode) {
  if (mode == NativeCode::at_once) {
    if (prepare(instructions, tape)) make({});
    return code();
  }
  const auto runs = static_cast<double>(runs_.fetch_add(1, std::memory_order_relaxed) + 1);
  if (runs < paying_runs_) return nullptr;
  if (prepare(instructions, tape)) {
    try {
      compile_later(shared_from_this());
    } catch (const std::exception& error) {  // there may be no more threads
      fail(error.what());
    }
  }
  return nullptr;
}

/// Writes the source. Returns true if the caller is to have it compiled.
bool NativeProgram::prepare(const Instructions& instructions, const Tape& tape) {
  const std::lock_guard lock(mutex_);
  if (is_decided_) return false;
  is_decided_ = true;
  source_ = program_source(instructions, tape, false);
  const std::optional<DumpLevel> level = dump_level_of_environment();
  if (level == DumpLevel::native || level == DumpLevel::all) {
    write_dump(program_source(instructions, tape, true).text);
  }
  if (source_.text.empty()) {
    problem_ = std::move(source_.problem);
    return false;
  }
  double seconds = 0;
  std::set<const FusedKernel*> groups;  // some run more than once
  for (std::size_t step = 0; step < source_.groups.size(); ++step) {
    if (source_.groups[step].name.empty()) continue;
    groups.insert(instructions.steps()[step].group);
    const NodeId unit = instructions.steps()[step].unit;
    seconds += std::max(instructions.lowered().graph().cost(unit), least_seconds);
  }
  groups_ = static_cast<std::uint32_t>(groups.size());
  share_ = seconds / seconds_;
  return true;
}

void NativeProgram::make(const CompilePriority& priority) {
  LoadedLibrary loaded = load_library(source_.text, priority);
  const std::lock_guard lock(mutex_);
  if (loaded.library == nullptr) {
    problem_ = std::move(loaded.problem);
    return;
  }
  code_ = std::make_unique<const MachineCode>(source_, std::move(loaded));
  source_ = {};
  ready_.store(code_.get(), std::memory_order_release);
}

void NativeProgram::fail(std::string problem) {
  const std::lock_guard lock(mutex_);
  problem_ = std::move(problem);
}

std::uint32_t NativeProgram::groups() const {
  const std::lock_guard lock(mutex_);
  return code_ != nullptr ? groups_ : 0;
}

double NativeProgram::share() const {
  const std::lock_guard lock(mutex_);
  return code_ != nullptr ? share_ : 0;
}

std::string NativeProgram::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

}  // namespace palimpsest
