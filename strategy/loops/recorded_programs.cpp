#include "strategy/loops/recorded_programs.h"

#include <algorithm>

#include "strategy/base/cache_limit.h"
#include "strategy/compile/fusion/signature.h"
#include "strategy/loops/loop_room.h"

namespace palimpsest {

StepRunner& RecordedPrograms::find_or_plan(const std::shared_ptr<Tape>& tape,
                                           const StepProgram::Wanted& wanted) {
  constexpr std::size_t most = 32;
  sign(*tape, threads_, signature_);
  const auto same = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.signature == signature_ && entry.wanted == wanted;
  });
  if (same != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, same);
  } else {
    RunOptions options;
    options.memory_budget = std::ssize(memory_);
    options.simplify = false;  // by numbers that the next step may not have
    const LoweredStore::Request request{wanted.results, wanted.backward_begins, {}, threads_};
    LoopRoom().give(*tape, request, options);
    auto program = std::make_shared<const StepProgram>(tape, wanted, options, threads_);
    const auto words = static_cast<Bytes>(signature_.size() * sizeof(std::uint64_t));
    const Bytes bytes = program->bytes() + words;
    entries_.push_front(
        {signature_, wanted, std::make_unique<StepRunner>(std::move(program), memory_), bytes});
    keep_within_limit(entries_, 1, most, [](const Entry& entry) { return entry.bytes; });
  }
  return *entries_.front().runner;
}

}  // namespace palimpsest
