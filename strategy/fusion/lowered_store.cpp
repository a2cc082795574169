#include "strategy/fusion/lowered_store.h"

#include <algorithm>

#include "strategy/fusion/signature.h"

namespace palimpsest {
namespace {

/// As many as plans are kept.
constexpr std::size_t most_entries = 16;

}  // namespace

std::shared_ptr<const Lowered> LoweredStore::find_or_make(const Tape& tape, const Request& request,
                                                          bool fuse) {
  sign(tape, request.threads, signature_);
  const auto put = [&](auto number) { signature_.push_back(static_cast<std::uint64_t>(number)); };
  put(fuse);
  put(request.threads);
  put(request.backward_begins);
  put(request.targets.size());
  for (const ValueId target : request.targets) put(target);
  for (const NodeId node : request.supplied) put(node);

  const auto same = std::find_if(entries_.begin(), entries_.end(),
                                 [&](const Entry& entry) { return entry.signature == signature_; });
  if (same != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, same);
    return same->lowered;
  }
  const auto& [targets, backward_begins, supplied, threads] = request;
  Lowered lowered = fuse ? Lowered::fused(tape, targets, threads, backward_begins, supplied)
                         : Lowered::unfused(tape, targets, threads, backward_begins, supplied);
  entries_.push_front({signature_, std::make_shared<const Lowered>(std::move(lowered))});
  if (entries_.size() > most_entries) entries_.pop_back();
  return entries_.front().lowered;
}

}  // namespace palimpsest
