#include "strategy/compile/fusion/lowered_store.h"

#include <algorithm>

#include "strategy/base/cache_limit.h"
#include "strategy/base/profile.h"
#include "strategy/compile/fusion/signature.h"
#include "strategy/compile/fusion/verify_lowered.h"
#include "strategy/compile/fusion/work.h"

namespace palimpsest {
namespace {

/// The number of plans that are kept, too.
constexpr std::size_t most_programs = 16;
/// Enough for a training step and an evaluation step.
constexpr std::size_t least_programs = 2;

}  // namespace

const std::shared_ptr<const Lowered>& LoweredStore::Program::get(const Tape& tape,
                                                                 const Request& request,
                                                                 Form form) {
  const bool simplify = form.simplify && is_simplified();
  std::shared_ptr<const Lowered>& lowered = forms_[form.fuse][simplify];
  if (lowered == nullptr) {
    const auto& [targets, backward_begins, supplied, threads, machine, costs, elsewhere, afresh] =
        request;
    const Simplification recorded;
    const Simplification& by = simplify ? simplification_ : recorded;
    Lowered made = form.fuse ? Lowered::fused(tape, targets, threads, backward_begins, supplied, by,
                                              afresh, machine)
                             : Lowered::unfused(tape, targets, threads, backward_begins, supplied,
                                                by, afresh, machine);
    if (costs != nullptr) {
      made.take_costs([&](NodeId unit) -> std::optional<double> {
        const std::optional<double> seconds = costs->seconds(work_of(tape, made, unit));
        if (!seconds) return {};
        return *seconds + machine.seconds_per_node;
      });
    }
    if (elsewhere) made.place_results_elsewhere();
#ifndef NDEBUG
    verify(made, tape, targets, by);
#endif
    lowered = std::make_shared<const Lowered>(std::move(made));
  }
  return lowered;
}

void LoweredStore::Program::simplify(const Tape& tape, const Request& request,
                                     const Simplification* before) {
  const Needs needs(tape, request.targets, request.supplied, request.afresh);
  simplification_ = Simplification(tape, needs, request.backward_begins, before);
  for (auto& form : forms_) form[true] = nullptr;
}

Bytes LoweredStore::Program::bytes() const {
  Bytes bytes = std::ssize(signature_) * Bytes{sizeof(std::uint64_t)} + simplification_.bytes();
  for (const auto& simplified_or_not : forms_) {
    for (const auto& lowered : simplified_or_not) {
      if (lowered != nullptr) bytes += lowered->bytes();
    }
  }
  return bytes;
}

Bytes LoweredStore::bytes() const {
  return bytes_of_all(programs_, [](const auto& one) { return one->bytes(); });
}

const std::shared_ptr<LoweredStore::Program>& LoweredStore::find_or_make(const Tape& tape,
                                                                         const Request& request) {
  sign(tape, request.threads, signature_);
  const auto put = [&](auto number) { signature_.push_back(static_cast<std::uint64_t>(number)); };
  put(request.threads);
  put(request.backward_begins);
  put(request.targets.size());
  for (const ValueId target : request.targets) put(target);
  for (const NodeId node : request.supplied) put(node);
  sign(request.machine, signature_);
  put(request.costs != nullptr ? request.costs->hash() : 0);
  put(request.results_elsewhere);
  put(request.afresh);

  const auto same = std::find_if(programs_.begin(), programs_.end(), [&](const auto& program) {
    return program->signature_ == signature_;
  });
  if (same != programs_.end()) {
    programs_.splice(programs_.begin(), programs_, same);
    Program& program = *programs_.front();
    if (!program.simplification_.holds(tape)) {
      program.simplify(tape, request, &program.simplification_);
    }
  } else {
    const auto program = std::make_shared<Program>();
    program->signature_ = signature_;
    program->simplify(tape, request, nullptr);
    programs_.push_front(program);
    keep_within_limit(programs_, least_programs, most_programs,
                      [](const auto& one) { return one->bytes(); });
  }
  return programs_.front();
}

}  // namespace palimpsest
