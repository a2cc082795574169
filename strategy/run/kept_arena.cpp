#include "strategy/run/kept_arena.h"

namespace palimpsest {

const Arena* KeptArena::get(const Instructions& instructions, const Meter& meter) {
  const Bytes size = instructions.arena_size();
  const bool fits = size > 0 && instructions.present_bytes() <= size / 64;
  const bool serves = larger_does_ ? arena_.size() >= size : arena_.size() == size;
  if (!fits || !serves || arena_.in_use()) give_up();
  if (!fits) return nullptr;
  if (arena_.size() == 0) arena_ = Arena(meter, size);
  held_.clear();
  for (const auto& list : {instructions.results(), instructions.present()}) {
    for (const auto& [value, place, before] : list) {
      if (place >= instructions.intervals().size()) continue;
      const Interval& interval = instructions.intervals()[place];
      held_.push_back({interval.offset, interval.bytes});
    }
  }
  return &arena_;
}

void KeptArena::give_up() {
  if (arena_.size() > 0) arena_.release_except(held_);
}

}  // namespace palimpsest
