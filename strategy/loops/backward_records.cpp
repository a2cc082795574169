#include "strategy/loops/backward_records.h"

#include <cstddef>
#include <span>
#include <utility>

#include "strategy/loops/loop_identity.h"
#include "strategy/loops/loop_run.h"

namespace palimpsest {

using Kind = JournalEntry::Kind;
using Phase = LoopPosition::Phase;

BackwardRecords::BackwardRecords(const Part& part, std::shared_ptr<LoopJournal> given)
    : part_(part),
      loop_(part.gradient.loop()),
      journal_(std::move(given)),
      is_given_(journal_ != nullptr) {
  if (!is_given_) {
    const std::string name = LoopResume::gradient(part_.gradient.number());
    journal_ = loop_.resume()->open(loop_, name, own_identity(), state_scope(part_.call));
    if (journal_ == nullptr) return;
    at().room = part_.room;
    at().share = part_.share;
    at().run_budget =
        division_given(part_.call.outputs, part_.call.outputs.back(), loop_).run_budget;
    if (const auto costs =
            loop_.held().disk() != nullptr ? loop_.held().disk()->known_costs() : std::nullopt) {
      at().write_cost = costs->write;
      at().read_cost = costs->read;
    }
  }
  records_before_ = journal_->records();
  part_.held.keep_account(journal_->table(), is_given_,
                          [this](auto... arguments) { make(arguments...); });
  part_.advance.set_pause([this](std::uint32_t) {
    has_current_ = true;
    pause();
  });
}

std::vector<std::string> BackwardRecords::own_identity() const {
  part_.steps.forward(0, part_.first, part_.blocks[0], false);
  const std::uint64_t first_step = hash_of(spans_of(part_.blocks[0], loop_.state().sizes));
  std::vector<std::string> lines = identity_of(loop_, part_.call, &part_.held, first_step);
  lines.push_back("steps in all " + std::to_string(part_.count));
  return lines;
}

void BackwardRecords::make(std::uint32_t from, const Addresses& state, std::uint32_t step,
                           const Addresses& to) {
  run_steps(loop_, part_.steps, part_.blocks, from, state, step, to, nullptr);
}

std::uint64_t hash_of_adjoints(const LoopGradient& gradient, const LoopAdjoints& adjoints,
                               std::uint32_t steps) {
  const std::uint64_t hash = hash_of_requested(gradient.requested());
  return hash_of(adjoints.outputs().range(0, steps), hash_of(adjoints.carried(), hash));
}

bool BackwardRecords::begin(bool are_given) {
  const std::uint64_t adjoints = hash_of_adjoints(part_.gradient, part_.adjoints, part_.count);
  const bool is_found =
      journal_->begins_with() != nullptr && (at().phase > Phase::ready || journal_->is_finished());
  if (is_found && at().adjoints != adjoints) {
    if (!journal_->is_finished()) {
      throw ArgumentError(loop_.body().name(),
                          "the journal in '" + journal_->directory() +
                              "' is of another run: it has given adjoints with the hash " +
                              hash_text(at().adjoints) + ", and this run has " +
                              hash_text(adjoints) + "; finish that run, or " +
                              std::string(loop_journal_remedy),
                          loop_.body().where);
    }
    journal_->forget_backward();
  } else if (is_found) {
    is_resumed_ = true;
    if (journal_->is_finished()) {
      journal_->load(Kind::result, 1, results());
      return true;
    }
    load();
    return false;
  }
  internal_check(are_given || !is_given_ || is_found, "a loop has no states to begin with");
  at().phase = loop_.has_condition() ? Phase::sweep : Phase::reversal;
  at().adjoints = adjoints;
  at().actions = 0;
  at().left = part_.count;
  return false;
}

void BackwardRecords::load() {
  LoopAdjoints& adjoints = part_.adjoints;
  const std::vector<Bytes>& sizes = loop_.state().sizes;
  if (part_.hashes != nullptr) {
    part_.hashes->resize(journal_->bytes_of(Kind::hashes) / sizeof(std::uint64_t));
    journal_->load(Kind::hashes, 0, {std::as_writable_bytes(std::span(*part_.hashes))});
  }
  if (!part_.held.load(journal_->begins_with()->entries)) journal_->fail_with_change();
  adjoints.continue_with(static_cast<std::uint32_t>(at().left));
  if (at().left < part_.count) {
    journal_->load(Kind::adjoint, 0, adjoints.carried());
    journal_->load(Kind::accumulated, 0, adjoints.sums());
  }
  journal_->load_ranges(Kind::inputs, adjoints.inputs());
  std::vector<std::byte> flags(part_.steps.untouched().size());
  journal_->load(Kind::untouched, 0, {std::span(flags)});
  std::vector<bool> untouched;
  for (const std::byte flag : flags) untouched.push_back(flag != std::byte{0});
  part_.steps.set_untouched(std::move(untouched));
  has_current_ = at().current != LoopPosition::none;
  if (!has_current_) return;
  const auto current = static_cast<std::uint32_t>(at().current);
  part_.advance.continue_with(current, [&](const Addresses& to) {
    if (!journal_->load_state(Kind::state, spans_of(to, sizes))) part_.held.make_again(current, to);
  });
}

LoopJournal::Pieces BackwardRecords::results() const {
  LoopJournal::Pieces pieces;
  const std::span<const Operand> outputs = part_.call.outputs;
  for (const Operand& output : outputs.first(outputs.size() - 3)) {
    pieces.push_back(memory_of(output));
  }
  return pieces;
}

void BackwardRecords::action_done(const ChainAction& action) {
  ++at().actions;
  has_current_ = action.kind != ChainAction::Kind::reverse;
  if (has_current_) return;
  at().left = action.step;
  pause();
}

void BackwardRecords::pause() {
  if (at().left > 0 && journal_->is_due(loop_)) record();
}

void BackwardRecords::stop() {
  if (at().left > 0) record();
}

void BackwardRecords::record() {
  const LoopAdjoints& adjoints = part_.adjoints;
  at().current = has_current_ ? part_.advance.step() : LoopPosition::none;
  journal_->record(false, [&] {
    std::vector<JournalEntry> entries;
    part_.held.save(at().left, entries);
    journal_->put(std::move(entries));
    if (has_current_) {
      journal_->put(Kind::state, 0, at().current,
                    spans_of(part_.advance.state(), loop_.state().sizes));
    }
    if (at().left < part_.count) {
      journal_->put(Kind::adjoint, 0, 0, adjoints.carried());
      journal_->put(Kind::accumulated, 0, 0, adjoints.sums());
    }
    journal_->put_range(Kind::inputs, at().left, part_.count, adjoints.inputs());
    std::vector<std::byte> flags;
    for (const bool flag : part_.steps.untouched()) flags.push_back(std::byte{flag});
    journal_->put(Kind::untouched, 0, 0, {std::span(flags)});
    put_hashes();
  });
}

void BackwardRecords::put_hashes() {
  if (part_.hashes != nullptr) journal_->put_hashes(*part_.hashes);
}

void BackwardRecords::end() {
  at().left = 0;
  at().current = LoopPosition::none;
  if (!journal_->has_records() && !journal_->is_due(loop_)) return;
  journal_->record(true, [&] {
    journal_->put(Kind::result, 1, 0, results());
    put_hashes();
  });
  journal_->leave();
}

void BackwardRecords::note(LoopCounts& counts) const {
  counts.records += journal_->records() - records_before_;
  counts.resumed += is_resumed_ ? 1 : 0;
  counts.states_repaired += part_.held.repaired();
}

}  // namespace palimpsest
