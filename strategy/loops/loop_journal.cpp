#include "strategy/loops/loop_journal.h"

#include <algorithm>
#include <utility>

#include "autodiff/error.h"
#include "strategy/loops/loop.h"

namespace palimpsest {
namespace {

Bytes bytes_of_pieces(const LoopJournal::Pieces& pieces) {
  Bytes bytes = 0;
  for (const std::span<std::byte> piece : pieces) bytes += std::ssize(piece);
  return bytes;
}

bool is_range(const JournalEntry& entry) {
  return entry.kind == JournalEntry::Kind::outputs || entry.kind == JournalEntry::Kind::inputs;
}

}  // namespace

LoopJournal::LoopJournal(const Loop& loop, const std::string& directory,
                         std::vector<std::string> identity)
    : journal_({loop.body().name(), loop_journal_mark, loop_journal_remedy}, directory,
               std::move(identity), loop.body().where),
      table_(journal_.file()),
      operation_(loop.body().name()),
      directory_(directory),
      path_(journal_.file().path()),
      where_(loop.body().where),
      is_exact_(loop.is_exact()) {
  for (const JournalRecord& found : journal_.found()) {
    if (record_ == nullptr && is_usable(found)) record_ = &found;
  }
  if (record_ == nullptr) {
    journal_.start();
    return;
  }
  journal_.continue_from(*record_);
  position = record_->position_as<LoopPosition>();
  for (const JournalEntry& entry : record_->entries) {
    const bool lasts = is_range(entry) || entry.kind == Kind::result;
    if (!lasts) continue;
    journal_.file().hold(entry.extent);
    lasting_.push_back(entry);
  }
}

/// A state that is damaged can be made again if states are exact.
bool LoopJournal::is_usable(const JournalRecord& record) {
  return std::ranges::all_of(record.entries, [&](const JournalEntry& entry) {
    const bool is_state = entry.kind == Kind::in_memory || entry.kind == Kind::on_disk ||
                          entry.kind == Kind::block || entry.kind == Kind::state ||
                          entry.kind == Kind::last;
    return (is_state && is_exact_) || journal_.file().is_intact(entry.extent);
  });
}

void LoopJournal::begin_again() {
  const JournalRecord* const last = journal_.last();
  if (last != nullptr && last->position_as<LoopPosition>().phase != LoopPosition::Phase::forward) {
    again_ = *last;
    record_ = &again_;
    position = again_.position_as<LoopPosition>();
    return;
  }
  record_ = nullptr;
  position = {};
  table_.clear();
  for (const JournalEntry& entry : std::exchange(lasting_, {})) {
    journal_.file().release(entry.extent);
  }
}

void LoopJournal::forget_backward() {
  record_ = nullptr;
  table_.clear();
  drop_lasting(Kind::inputs);
  std::erase_if(lasting_, [&](const JournalEntry& entry) {
    const bool is_backward = entry.kind == Kind::result && entry.number == 1;
    if (is_backward) journal_.file().release(entry.extent);
    return is_backward;
  });
}

void LoopJournal::drop_lasting(Kind kind) {
  std::erase_if(lasting_, [&](const JournalEntry& entry) {
    if (entry.kind == kind) journal_.file().release(entry.extent);
    return entry.kind == kind;
  });
}

const JournalEntry* LoopJournal::entry_of(Kind kind, std::uint32_t number) const {
  for (const JournalEntry& entry : record_->entries) {
    if (entry.kind == kind && entry.number == number) return &entry;
  }
  return nullptr;
}

std::uint64_t LoopJournal::bytes_of(Kind kind) const {
  const JournalEntry* const entry = entry_of(kind, 0);
  return entry == nullptr ? 0 : static_cast<std::uint64_t>(entry->extent.bytes);
}

bool LoopJournal::read(const Extent& extent, const Pieces& pieces) {
  return journal_.file().read(extent, [&](const StoredObject::Source& source) {
    for (const std::span<std::byte> piece : pieces) source(piece);
  });
}

void LoopJournal::fail_with_change() const {
  throw FileError("[" + operation_ + "] " + path_ + " has been changed (recorded at " +
                  to_string(where_) + "); remove the directory of the journal to start afresh");
}

void LoopJournal::load(Kind kind, std::uint32_t number, const Pieces& pieces) {
  if (bytes_of_pieces(pieces) == 0) return;
  const JournalEntry* const entry = entry_of(kind, number);
  internal_check(entry != nullptr, "a record of a loop has not all of its objects");
  if (!read(entry->extent, pieces)) fail_with_change();
}

bool LoopJournal::load_state(Kind kind, const Pieces& pieces) {
  const JournalEntry* const entry = entry_of(kind, 0);
  const bool is_intact = entry != nullptr && read(entry->extent, pieces);
  if (!is_intact && !is_exact_) fail_with_change();
  return is_intact;
}

void LoopJournal::load_ranges(Kind kind, const Parts& parts) {
  for (const JournalEntry& entry : record_->entries) {
    if (entry.kind != kind) continue;
    if (!read(entry.extent, parts.range(entry.step, entry.end))) fail_with_change();
  }
}

bool LoopJournal::is_due(const Loop& loop) {
  clock_.look();
  return clock_.is_time_to_record(loop.options().record_every);
}

Extent LoopJournal::write(const Pieces& pieces) {
  return journal_.file().write(
      bytes_of_pieces(pieces),
      [&](const StoredObject::Sink& sink) {
        for (const std::span<std::byte> piece : pieces) sink(piece);
      },
      "a record");
}

void LoopJournal::put(Kind kind, std::uint32_t number, std::uint64_t step, const Pieces& pieces) {
  draft_.push_back({.kind = kind, .number = number, .step = step, .extent = write(pieces)});
  own_.push_back(draft_.back().extent);
}

void LoopJournal::put(std::vector<JournalEntry> entries) {
  draft_.insert(draft_.end(), entries.begin(), entries.end());
}

void LoopJournal::put_for_good(Kind kind, std::uint32_t number, const Pieces& pieces) {
  lasting_.push_back({.kind = kind, .number = number, .extent = write(pieces)});
}

void LoopJournal::put_range(Kind kind, std::uint64_t first, std::uint64_t last,
                            const Parts& parts) {
  std::vector<JournalEntry> ranges;
  std::vector<JournalEntry> others;
  for (const JournalEntry& entry : lasting_)
    (entry.kind == kind ? ranges : others).push_back(entry);
  // Known ranges touch each other and grow in one direction.
  std::uint64_t low = last;
  std::uint64_t high = first;
  for (const JournalEntry& entry : ranges) {
    low = std::min(low, entry.step);
    high = std::max(high, entry.end);
  }
  JournalEntry added{.kind = kind, .step = first, .end = last};
  if (!ranges.empty()) (high < last ? added.step : added.end) = high < last ? high : low;
  if (added.step >= added.end || bytes_of_pieces(parts.range(added.step, added.end)) == 0) return;
  // A range is merged with earlier ones that are not longer, so that there are few ranges.
  const auto length = [](const JournalEntry& range) { return range.end - range.step; };
  std::vector<Extent> merged;
  for (; !ranges.empty() && length(ranges.back()) <= length(added); ranges.pop_back()) {
    added.step = std::min(added.step, ranges.back().step);
    added.end = std::max(added.end, ranges.back().end);
    merged.push_back(ranges.back().extent);
  }
  added.extent = write(parts.range(added.step, added.end));
  for (const Extent& extent : merged) journal_.file().release(extent);
  lasting_ = std::move(others);
  lasting_.insert(lasting_.end(), ranges.begin(), ranges.end());
  lasting_.push_back(added);
}

void LoopJournal::commit(bool is_finished) {
  if (is_finished) {
    table_.clear();
    drop_lasting(Kind::inputs);
  }
  std::vector<JournalEntry> entries = std::exchange(draft_, {});
  entries.insert(entries.end(), lasting_.begin(), lasting_.end());
  journal_.add(position, is_finished, std::move(entries));
  for (const Extent& extent : std::exchange(own_, {})) journal_.file().release(extent);
  ++records_;
  if (is_finished) journal_.finish();
}

}  // namespace palimpsest
