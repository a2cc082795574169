#include "strategy/compile/program_cache.h"

#include <algorithm>

#include "strategy/base/cache_limit.h"
#include "strategy/base/profile.h"
#include "strategy/compile/fusion/fingerprint.h"

namespace palimpsest {
namespace {

/// Enough for the handful of structures that a process alternates between.
constexpr std::size_t most_programs = 16;
/// One training step and one evaluation step.
constexpr std::size_t least_programs = 2;

}  // namespace

Bytes CachedProgram::bytes() const {
  return std::ssize(fingerprint) * Bytes{sizeof(std::uint64_t)} + forms.bytes() +
         versions.bytes_beside(forms);
}

Bytes ProgramCache::bytes() const {
  return bytes_of_all(programs_, [](const auto& each) { return each->bytes(); }) +
         plannings_.bytes() + steps_.bytes();
}

const CachedProgramPtr& ProgramCache::find_or_add(const Tape& tape, const ProgramSpec& spec) {
  append_fingerprint(tape, spec.threads, fingerprint_);
  const auto put = [&](auto number) { fingerprint_.push_back(static_cast<std::uint64_t>(number)); };
  put(spec.threads);
  put(spec.backward_begins);
  put(spec.targets.size());
  for (const ValueId target : spec.targets) put(target);
  for (const NodeId node : spec.held) put(node);
  append_fingerprint(spec.machine, fingerprint_);
  put(spec.costs != nullptr ? spec.costs->hash() : 0);
  put(spec.results_in_buffers);
  put(spec.donations.size());
  for (const auto& [argument, result] : spec.donations) {
    put(argument);
    put(result);
  }
  put(spec.afresh);

  // A program that was simplified more stays for the tapes that it holds for, whose plans must not
  // change. Constants that change every time soon have one that holds for all of them.
  auto same = programs_.end();
  const LoweredForms* simplest = nullptr;
  for (auto each = programs_.begin(); each != programs_.end(); ++each) {
    if ((*each)->fingerprint != fingerprint_) continue;
    const Simplification& made = (*each)->forms.simplification();
    const auto is_less = [&](const LoweredForms& other) {
      return made.size() < other.simplification().size();
    };
    if (simplest == nullptr || is_less(*simplest)) simplest = &(*each)->forms;
    const bool is_better = same == programs_.end() || !is_less((*same)->forms);
    if (is_better && made.holds(tape)) same = each;
  }
  if (same != programs_.end()) {
    programs_.splice(programs_.begin(), programs_, same);
  } else {
    programs_.push_front(std::make_shared<CachedProgram>(
        CachedProgram{fingerprint_, LoweredForms(tape, spec, simplest),
                      PlanVersions(plannings_, pace_, plans_compete_)}));
    keep_within_limits();
  }
  return programs_.front();
}

const CachedProgramPtr& ProgramCache::use(const CachedProgramPtr& program) {
  const auto used = std::ranges::find(programs_, program);
  if (used != programs_.end()) {
    programs_.splice(programs_.begin(), programs_, used);
  } else {
    programs_.push_front(program);
    keep_within_limits();
  }
  return programs_.front();
}

void ProgramCache::keep_within_limits() {
  keep_within_limit(programs_, least_programs, most_programs,
                    [](const auto& each) { return each->bytes(); });
}

}  // namespace palimpsest
