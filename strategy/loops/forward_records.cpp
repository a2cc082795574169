#include "strategy/loops/forward_records.h"

#include <utility>

#include "strategy/loops/loop_identity.h"
#include "strategy/loops/loop_run.h"

namespace palimpsest {

using Kind = JournalEntry::Kind;
using Phase = LoopPosition::Phase;

void run_steps(const Loop& loop, LoopSteps& steps, const Addresses (&blocks)[2], std::uint32_t from,
               const Addresses& state, std::uint32_t step, const Addresses& to,
               const Parts* outputs) {
  const bool is_there = state == to;  // a step must not make its state where it reads it
  if (is_there) loop.state().copy(to, blocks[0]);
  const Addresses& begin = is_there ? blocks[0] : state;
  Advance advance(loop.held(), Advance::Makes::states, steps, begin, blocks[0], blocks[1], nullptr);
  advance.restore(begin, from);
  advance.to(step, nullptr, outputs);
  loop.state().copy(advance.state(), to);
}

ForwardRecords::ForwardRecords(const Part& part) : part_(part) {
  const Loop& loop = part_.loop;
  RunScope* const scope = state_scope(part_.call);
  const char* const name =
      part_.held != nullptr ? LoopResume::with_states : LoopResume::without_states;
  journal_ = loop.resume()->open(loop, name,
                                 identity_of(loop, part_.call, part_.held, first_step()), scope);
  if (journal_ == nullptr) return;
  records_before_ = journal_->records();
  if (part_.held != nullptr) {
    part_.held->keep_account(journal_->table(), false,
                             [this](auto... arguments) { make(arguments...); });
    at().room = memory_of(part_.call.outputs.back()).size();
    const LoopDivision division =
        division_given(part_.call.outputs, part_.call.outputs.back(), part_.loop);
    at().share = division.share;
    at().run_budget = division.run_budget;
  }
  if (const auto costs =
          loop.held().disk() != nullptr ? loop.held().disk()->known_costs() : std::nullopt) {
    at().write_cost = costs->write;
    at().read_cost = costs->read;
  }
  part_.advance.set_pause([this](std::uint32_t step) { pause(step); });
}

/// The hash of the first step's state and outputs; 0 if there is no step.
std::uint64_t ForwardRecords::first_step() const {
  const Loop& loop = part_.loop;
  if (loop.has_condition() ? !part_.steps.goes_on(0, part_.first) : loop.steps() == 0) return 0;
  Addresses results = part_.blocks[0];
  part_.outputs.append(0, results);
  part_.steps.forward(0, part_.first, results, !loop.has_condition());
  const std::uint64_t state = hash_of(spans_of(part_.blocks[0], loop.state().sizes));
  return loop.has_condition() ? state : hash_of(part_.outputs.range(0, 1), state);
}

void ForwardRecords::make(std::uint32_t from, const Addresses& state, std::uint32_t step,
                          const Addresses& to) {
  run_steps(part_.loop, part_.steps, part_.blocks, from, state, step, to,
            part_.loop.has_condition() ? nullptr : &part_.outputs);
}

bool ForwardRecords::begin() {
  if (journal_->begins_with() == nullptr) return false;
  const std::vector<JournalEntry>& entries = journal_->begins_with()->entries;
  const std::vector<Bytes>& sizes = part_.loop.state().sizes;
  HeldStates* const held = part_.held;
  if (part_.hashes != nullptr) {
    part_.hashes->resize(journal_->bytes_of(Kind::hashes) / sizeof(std::uint64_t));
    journal_->load(Kind::hashes, 0, {std::as_writable_bytes(std::span(*part_.hashes))});
  }
  journal_->load_ranges(Kind::outputs, part_.outputs);
  const bool has_ended = at().phase != Phase::forward;
  const bool has_results = has_ended && journal_->has_forward_results();
  const bool is_in_backward = at().phase > Phase::ready || journal_->is_finished();
  has_states_ = held != nullptr && !is_in_backward;
  if (has_states_ && !held->load(entries)) journal_->fail_with_change();
  if (has_ended && !has_results) {
    repeats_ = true;
    return false;
  }
  if (!has_ended) {
    const auto current = static_cast<std::uint32_t>(at().current);
    part_.advance.continue_with(current, [&](const Addresses& to) {
      if (journal_->load_state(Kind::state, spans_of(to, sizes))) return;
      if (held != nullptr) return held->make_again(current, to);
      make(0, part_.first, current, to);
    });
    return false;
  }
  journal_->load(Kind::result, 0, spans_of(part_.result, sizes));
  if (has_states_ && !part_.loop.has_condition()) {
    if (!journal_->load_state(Kind::last, spans_of(held->last(), sizes))) {
      held->make_again(part_.loop.steps() - 1, held->last());
    }
  }
  return true;
}

void ForwardRecords::pause(std::uint32_t step) {
  if (repeats_) return;
  const Loop& loop = part_.loop;
  const bool is_last = !loop.has_condition() && step == loop.steps();
  if (!is_last && journal_->is_due(loop)) record();
}

void ForwardRecords::stop() {
  if (!repeats_) record();
}

void ForwardRecords::put_hashes() {
  if (part_.hashes != nullptr) journal_->put_hashes(*part_.hashes);
}

void ForwardRecords::put_held() {
  std::vector<JournalEntry> entries;
  if (part_.held != nullptr) part_.held->save(LoopPosition::none, entries);
  journal_->put(std::move(entries));
}

void ForwardRecords::record() {
  at().current = part_.advance.step();
  journal_->record(false, [&] {
    put_held();
    put_hashes();
    journal_->put(Kind::state, 0, at().current,
                  spans_of(part_.advance.state(), part_.loop.state().sizes));
    journal_->put_range(Kind::outputs, 0, at().current, part_.outputs);
  });
}

void ForwardRecords::put_results() {
  journal_->put_for_good(Kind::result, 0, spans_of(part_.result, part_.loop.state().sizes));
  journal_->put_range(Kind::outputs, 0, part_.loop.steps(), part_.outputs);
}

void ForwardRecords::end(std::uint64_t count) {
  const Loop& loop = part_.loop;
  if (repeats_) {
    // So that a process that is stopped again and again gets on.
    if (!journal_->is_finished()) put_results();
    return;
  }
  at().phase = Phase::ready;
  at().current = LoopPosition::none;
  at().steps = count;
  const bool is_finished = part_.held == nullptr || count == 0;
  // Without a record now, later ones do not have the results, which may be gone then. A process
  // that continues runs these few steps again.
  if (!journal_->is_due(loop) && !journal_->has_records()) return;
  put_results();
  journal_->record(is_finished, [&] {
    put_hashes();
    if (is_finished) return;
    put_held();
    if (loop.has_condition()) return;
    journal_->put(Kind::last, 0, loop.steps() - 1,
                  spans_of(part_.held->last(), loop.state().sizes));
  });
}

void ForwardRecords::hand_over(LoopHandover& handover) {
  handover.leave_file(part_.held->finish());
  journal_->leave();
  handover.leave_journal(std::move(journal_));
  handover.has_states = has_states_;
}

void ForwardRecords::note(LoopCounts& counts) const {
  counts.records += journal_->records() - records_before_;
  counts.resumed += journal_->begins_with() != nullptr ? 1 : 0;
  if (part_.held != nullptr) counts.states_repaired += part_.held->repaired();
}

}  // namespace palimpsest
