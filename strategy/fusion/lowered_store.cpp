#include "strategy/fusion/lowered_store.h"

#include <algorithm>
#include <bit>

#include "strategy/fusion/signature.h"
#include "strategy/fusion/work.h"
#include "strategy/profile.h"

namespace palimpsest {
namespace {

/// As many as plans are kept.
constexpr std::size_t most_programs = 16;

}  // namespace

const std::shared_ptr<const Lowered>& LoweredStore::Program::get(const Tape& tape,
                                                                 const Request& request,
                                                                 bool fuse) {
  std::shared_ptr<const Lowered>& lowered = fuse ? fused_ : unfused_;
  if (lowered == nullptr) {
    const auto& [targets, backward_begins, supplied, threads, machine, costs] = request;
    Lowered made =
        fuse ? Lowered::fused(tape, targets, threads, backward_begins, supplied, false, machine)
             : Lowered::unfused(tape, targets, threads, backward_begins, supplied, machine);
    if (costs != nullptr) {
      made.take_costs([&](NodeId unit) -> std::optional<double> {
        const std::optional<double> seconds = costs->seconds(work_of(tape, made, unit));
        if (!seconds) return {};
        return *seconds + machine.seconds_per_node;
      });
    }
    lowered = std::make_shared<const Lowered>(std::move(made));
  }
  return lowered;
}

const std::shared_ptr<LoweredStore::Program>& LoweredStore::find_or_make(const Tape& tape,
                                                                         const Request& request) {
  sign(tape, request.threads, signature_);
  const auto put = [&](auto number) { signature_.push_back(static_cast<std::uint64_t>(number)); };
  const auto put_number = [&](double number) { put(std::bit_cast<std::uint64_t>(number)); };
  put(request.threads);
  put(request.backward_begins);
  put(request.targets.size());
  for (const ValueId target : request.targets) put(target);
  for (const NodeId node : request.supplied) put(node);
  const Machine& machine = request.machine;
  put_number(machine.flops_per_second);
  put_number(machine.bytes_per_second);
  put_number(machine.seconds_per_node);
  for (const Cache& cache : machine.caches) {
    put(cache.bytes);
    put_number(cache.bytes_per_second);
  }
  put(request.costs != nullptr ? request.costs->hash() : 0);

  const auto same = std::find_if(programs_.begin(), programs_.end(), [&](const auto& program) {
    return program->signature_ == signature_;
  });
  if (same != programs_.end()) {
    programs_.splice(programs_.begin(), programs_, same);
  } else {
    programs_.push_front(std::make_shared<Program>());
    programs_.front()->signature_ = signature_;
    if (programs_.size() > most_programs) programs_.pop_back();
  }
  return programs_.front();
}

}  // namespace palimpsest
