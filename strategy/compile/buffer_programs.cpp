#include "strategy/compile/buffer_programs.h"

#include <algorithm>

#include "strategy/compile/form_choice.h"
#include "strategy/compile/fusion/fingerprint.h"

namespace palimpsest {
namespace {

bool have_equal_attributes(const Tape& a, const Tape& b) {
  for (NodeId node = 0; node < a.node_count(); ++node) {
    if (!a.operation(node).random && !(a.attributes(node) == b.attributes(node))) return false;
  }
  return true;
}

/// False if nodes depend on more than what is recorded, such as users' operations.
bool may_come_again(const Tape& tape) {
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (!tape.attributes(node).may_come_again()) return false;
  }
  return true;
}

}  // namespace

bool holds_loops(const Tape& tape) {
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (tape.operation(node).has_state_budget) return true;
  }
  return false;
}

OrRefusal<BufferProgramPtr> BufferPrograms::find_or_compile(const std::shared_ptr<Tape>& tape,
                                                            const BufferInterface& interface,
                                                            const RunOptions& options,
                                                            LoopStateBudgets& loops) {
  const bool only_itself =
      match_ == Match::tape || (match_ == Match::attributes && holds_loops(*tape));
  fingerprint_.clear();
  if (!only_itself) append_fingerprint(*tape, options.threads, fingerprint_);
  // Making the key of the default planner takes as long as finding the program.
  const std::string planner = options.planner == nullptr ? "" : options.planner->key();
  const auto same = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return entry.budget == options.memory_budget && entry.threads == options.threads &&
           entry.planner == planner && entry.interface == interface &&
           serves(entry, tape, only_itself);
  });
  if (same != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, same);
  } else {
    OrRefusal<BufferProgramPtr> made =
        compile_for_buffers(tape, interface, options, loops, cache_for(tape, only_itself));
    // Loops get other budgets in a later phase.
    if (match_ == Match::attributes && only_itself && made) return made;
    const Bytes bytes = made ? (*made)->bytes() : tape->metadata_bytes();
    keep({fingerprint_, interface, options.memory_budget, planner, options.threads, tape,
          std::move(made), bytes, may_come_again(*tape)});
  }
  entries_.front().last_phase = phases_;
  return entries_.front().outcome;
}

ProgramCache* BufferPrograms::cache_for(const std::shared_ptr<Tape>& tape, bool only_itself) {
  if (!is_in_phase_) return nullptr;
  const auto known = std::ranges::find_if(phase_, [&](const InPhase& each) {
    if (only_itself) return each.tape == tape;
    return each.fingerprint == fingerprint_ && have_equal_attributes(*each.tape, *tape);
  });
  if (known != phase_.end()) return known->cache.get();
  phase_.push_front({fingerprint_, tape, std::make_unique<ProgramCache>(false)});
  return phase_.front().cache.get();
}

bool BufferPrograms::serves(const Entry& entry, const std::shared_ptr<Tape>& tape,
                            bool only_itself) const {
  if (only_itself) return entry.tape == tape;
  return entry.fingerprint == fingerprint_ &&
         (match_ == Match::structure || have_equal_attributes(*entry.tape, *tape));
}

BufferProgramPtr BufferPrograms::find_for(Bytes budget) const {
  const Entry* found = nullptr;
  for (const Entry& entry : entries_) {
    if (entry.budget != budget || !entry.outcome) continue;
    if (found == nullptr || entry.threads < found->threads) found = &entry;
  }
  return found == nullptr ? nullptr : *found->outcome;
}

void BufferPrograms::begin_phase() {
  // Enough to alternate between gradients and values, and for micro-batches.
  constexpr std::uint64_t longest_unused = 8;
  phase_.clear();
  is_in_phase_ = true;
  ++phases_;
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto next = std::next(entry);
    const bool is_unused = entry->last_phase + longest_unused < phases_;
    const bool is_old_refusal = !entry->outcome && entry->last_phase + 1 < phases_;
    if ((!entry->comes_again && is_unused) || is_old_refusal) erase(entry);
    entry = next;
  }
}

void BufferPrograms::end_phase() {
  phase_.clear();
  is_in_phase_ = false;
}

void BufferPrograms::erase(std::list<Entry>::iterator entry) {
  bytes_ -= entry->bytes;
  entries_.erase(entry);
}

void BufferPrograms::keep(Entry entry) {
  entry.bytes += static_cast<Bytes>(entry.fingerprint.size() * sizeof(std::uint64_t));
  bytes_ += entry.bytes;
  entries_.push_front(std::move(entry));
  const auto is_too_much = [&] {
    if (entries_.size() <= 1) return false;
    const bool is_in_use = is_in_phase_ && entries_.back().last_phase == phases_;
    return entries_.size() > most_ || (bytes_ > most_bytes_ && !is_in_use);
  };
  while (is_too_much()) erase(std::prev(entries_.end()));
}

}  // namespace palimpsest
