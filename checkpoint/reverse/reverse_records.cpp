#include <algorithm>
#include <cstring>
#include <utility>

#include "autodiff/error.h"
#include "checkpoint/reverse/agreement.h"
#include "checkpoint/reverse/journal_bytes.h"
#include "checkpoint/reverse/reverse_run.h"

// A record has everything that the run continues from: its position, all kept states, the current
// state, the adjoint and the accumulated objects. States that are in the file already are not
// written again.

namespace palimpsest {

using Kind = JournalEntry::Kind;

void ReverseRun::add_record() {
  std::vector<JournalEntry> entries;
  std::vector<Extent> own;  // of this record alone
  for (const auto tier : {KeptStates::Tier::memory, KeptStates::Tier::disk}) {
    std::vector<KeptState>& kept = kept_->tier(tier);
    for (std::size_t slot = 0; slot < kept.size(); ++slot) {
      if (!kept[slot].is_kept) continue;
      kept_->write(kept[slot]);
      entries.push_back({.kind = tier == KeptStates::Tier::memory ? Kind::in_memory : Kind::on_disk,
                         .number = static_cast<std::uint32_t>(slot),
                         .step = kept[slot].step,
                         .is_encoded = kept[slot].is_encoded ? 1u : 0u,
                         .charged = kept[slot].charged,
                         .extent = kept[slot].extent});
    }
  }
  const auto add = [&](JournalEntry entry, const StoredObject& object, const std::string& what) {
    entry.extent = file_->write(
        object.bytes(), [&](const StoredObject::Sink& sink) { object.save(sink); }, what);
    own.push_back(entry.extent);
    entries.push_back(entry);
  };
  // State 0 is given to each run, which does not know a lossy copy of it.
  const bool is_given = is_sweep() && position_.current == 0;
  if (position_.current != none && !is_given) {
    add({.kind = Kind::state, .step = position_.current}, chain_.state(), "the current state");
  }
  if (has_adjoint_) add({.kind = Kind::adjoint}, *chain_.adjoint(), "the adjoint");
  for (std::uint32_t i = 0; const NamedObject& object : chain_.accumulated()) {
    add({.kind = Kind::accumulated, .number = i, .charged = plan_.accumulated[i]}, *object.object,
        object.name);
    ++i;
  }
  if (hashes_) {
    const auto bytes = std::as_bytes(hashes_->hashes());
    JournalEntry entry{.kind = Kind::hashes, .step = hashes_->distance()};
    entry.extent = file_->write(
        std::ssize(bytes), [&](const StoredObject::Sink& sink) { sink(bytes); }, "hashes");
    own.push_back(entry.extent);
    entries.push_back(entry);
  }
  if (samples_) {
    const std::vector<JournalEntry> saved = samples_->save();
    own.push_back(saved.front().extent);
    entries.insert(entries.end(), saved.begin(), saved.end());
  }
  journal_->add(position_, position_.phase == Phase::finished, std::move(entries));
  for (const Extent& extent : own) file_->release(extent);
  ++report_.records;
}

bool ReverseRun::load_object(const JournalEntry& entry, StoredObject& object) {
  return file_->is_intact(entry.extent) &&
         file_->read(entry.extent, [&](const StoredObject::Source& source) {
           object.load(entry.extent.bytes, source);
         });
}

bool ReverseRun::continue_from(const JournalRecord& record) {
  position_ = record.position_as<JournalPosition>();
  std::vector<JournalEntry> samples;
  const JournalEntry* state = nullptr;
  for (const JournalEntry& entry : record.entries) {
    bool is_intact = true;
    switch (entry.kind) {
      case Kind::adjoint:
        is_intact = load_object(entry, *chain_.adjoint());
        has_adjoint_ = true;
        break;
      case Kind::accumulated:
        is_intact = load_object(entry, *chain_.accumulated()[entry.number].object);
        break;
      case Kind::hashes: {
        std::vector<std::uint64_t> hashes(static_cast<std::size_t>(entry.extent.bytes) / 8);
        is_intact = file_->read(entry.extent, [&](const StoredObject::Source& source) {
          source(std::as_writable_bytes(std::span(hashes)));
        });
        hashes_->load(entry.step, hashes);
        break;
      }
      case Kind::sample:
        samples.push_back(entry);
        break;
      case Kind::state:
        state = &entry;
        break;
      case Kind::in_memory:
      case Kind::on_disk: {
        const auto tier =
            entry.kind == Kind::on_disk ? KeptStates::Tier::disk : KeptStates::Tier::memory;
        std::vector<KeptState>& kept = kept_->tier(tier);
        if (entry.number >= kept.size()) kept.resize(entry.number + std::size_t{1});
        KeptState& place = kept[entry.number];
        place.is_kept = true;
        place.step = entry.step;
        place.bytes = entry.extent.bytes;
        place.extent = entry.extent;
        place.is_encoded = entry.is_encoded != 0;
        place.charged = entry.charged;
        file_->hold(entry.extent);
        break;
      }
      default:
        internal_check(false, "a record of a run has an object of a loop");
    }
    if (!is_intact) return false;
  }
  if (samples_ && !samples_->load(samples)) return false;
  if (position_.phase == Phase::finished) return true;
  // The given state is state 0, from which a damaged copy of it can be made again.
  std::vector<KeptState>& in_memory = kept_->tier(KeptStates::Tier::memory);
  for (const auto tier : {KeptStates::Tier::memory, KeptStates::Tier::disk}) {
    for (KeptState& kept : kept_->tier(tier)) {
      if (!kept.is_kept || kept.step != 0 || file_->is_intact(kept.extent)) continue;
      if (!kept_->matches(kept)) return false;
      kept_->replace(kept, tier);
      ++report_.states_repaired;
    }
  }
  bool is_whole = true;
  for (KeptState& kept : in_memory) {
    if (!kept.is_kept || kept.memory != nullptr || kept_->read(kept)) continue;
    if (!kept_->is_exact()) return false;
    is_whole = false;
  }
  if (plan_.by_bytes) report_.states_in_memory = in_memory.size();
  is_memory_whole_ = holds_for_all(options_.group.get(), is_whole);
  if (schedule_ != nullptr) replay_schedule();
  if (state == nullptr) return true;
  const bool is_intact = load_object(*state, chain_.state());
  if (!holds_for_all(options_.group.get(), is_intact)) {
    KeptState copy;
    copy.step = state->step;
    copy.extent = state->extent;
    make_again(copy, !is_intact);
  }
  return true;
}

void ReverseRun::replay_schedule() {
  std::uint64_t actions = position_.actions;
  if (!plan_.steps) {
    const std::uint64_t units = (position_.length + plan_.segment - 1) / plan_.segment;
    for (std::uint64_t i = is_sweep() ? actions : units; i > 0; --i) schedule_->before_step();
    if (is_sweep()) return;
    schedule_->end_sweep();
    expected_ = calls_expected();
  }
  for (; actions > 0; --actions) schedule_->next();
}

}  // namespace palimpsest
