#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autodiff/error.h"
#include "checkpoint/reverse/journal.h"
#include "checkpoint/reverse/run_clock.h"
#include "strategy/loops/held_table.h"
#include "strategy/loops/loop_memory.h"

namespace palimpsest {

class Loop;

/// How far a loop is. A record of its journal begins with it.
struct LoopPosition {
  enum class Phase : std::uint64_t {
    forward,   ///< the steps run for the first time
    ready,     ///< they have run, and states for the backward part are held
    sweep,     ///< the backward part of a loop of unknown length chooses the states that it holds
    reversal,  ///< the backward part carries out its schedule
  };
  Phase phase = Phase::forward;
  std::uint64_t current = none;  ///< number of the current state
  std::uint64_t actions = 0;     ///< of the schedule that are done, or of the choices of states
  std::uint64_t left = none;     ///< steps that are still to be reversed
  std::uint64_t steps = 0;       ///< of a `while_loop`, once it has ended
  std::uint64_t adjoints = 0;    ///< hash of the given adjoints, in the backward part
  Bytes room = 0;                ///< for held states
  Bytes share = 0;               ///< the step budget
  Bytes run_budget = 0;
  double write_cost = -1;  ///< of the disk, in steps; negative if they are not known
  double read_cost = -1;

  static constexpr std::uint64_t none = ~std::uint64_t{0};
};

inline constexpr std::string_view loop_journal_mark = "palimpsest loop journal 3\n";
inline constexpr std::string_view loop_journal_remedy =
    "name another directory, or give each tape of a batch's parts a number with Tape::set_part";

/// The journal of a loop, or of one of its backward parts, during one run. It is handed over from
/// the forward part to the backward part.
class LoopJournal {
 public:
  using Kind = JournalEntry::Kind;
  using Pieces = std::vector<std::span<std::byte>>;

  /// Opens the journal in `directory`, and begins with the last record that is intact. If there is
  /// none, it begins afresh. Throws as `Journal`.
  LoopJournal(const Loop& loop, const std::string& directory, std::vector<std::string> identity);

  LoopPosition position;
  const std::string& directory() const { return directory_; }
  HeldTable& table() { return table_; }

  /// The record that this run begins with; null if it begins afresh.
  const JournalRecord* begins_with() const { return record_; }
  /// Whether that record is of a loop that has ended.
  bool is_finished() const { return record_ != nullptr && record_->is_finished; }
  /// Whether that record has the results of the forward part.
  bool has_forward_results() const { return entry_of(Kind::result, 0) != nullptr; }
  /// A part of the loop uses the journal from now on. Returns false if another part does. At the
  /// beginning the part that opened it uses it.
  bool take() { return !is_in_use_.exchange(true); }
  /// Other parts may use it. Without records it would have nothing for a part that runs again.
  void leave() { is_in_use_ = false; }
  /// The same run runs the forward part again. Begins with the last record if it has the results.
  void begin_again();

  /// Forgets what the record has of a backward part, which begins afresh. Its position is that of a
  /// part without states.
  void forget_backward();

  /// Reads an object of the record. Throws `FileError` if it has been damaged since.
  void load(Kind kind, std::uint32_t number, const Pieces& pieces);
  std::uint64_t bytes_of(Kind kind) const;
  /// Reads what the record has of the elements of all steps.
  void load_ranges(Kind kind, const Parts& parts);
  /// Reads a state of the record. Returns whether it is intact, if it can be made again. If it was
  /// rounded, that would give another state, and a damaged one throws `FileError`.
  bool load_state(Kind kind, const Pieces& pieces);

  /// Throws `FileError`, because an object has been damaged since the journal was opened.
  [[noreturn]] void fail_with_change() const;

  /// Whether it is time for a record.
  bool is_due(const Loop& loop);
  bool has_records() const { return journal_.last() != nullptr; }
  /// Adds a record of all objects that `put_objects` puts.
  template <class F>
  void record(bool is_finished, F put_objects) {
    clock_.time_record([&] {
      put_objects();
      commit(is_finished);
    });
  }
  /// An object of the next record alone.
  void put(Kind kind, std::uint32_t number, std::uint64_t step, const Pieces& pieces);
  void put(std::vector<JournalEntry> entries);
  /// The hashes of states; none without `LoopOptions::check`.
  void put_hashes(std::span<std::uint64_t> hashes) {
    if (!hashes.empty()) put(Kind::hashes, 0, 0, {std::as_writable_bytes(hashes)});
  }
  /// An object of all later records.
  void put_for_good(Kind kind, std::uint32_t number, const Pieces& pieces);
  /// The elements of all steps from `first` to before `last`. Those that are in the file already
  /// are not written again.
  void put_range(Kind kind, std::uint64_t first, std::uint64_t last, const Parts& parts);

  /// The loop has ended, although no backward part has taken the journal. `hashes` as below.
  void finish(std::span<std::uint64_t> hashes) {
    if (!has_records()) return;
    if (!is_finished()) {
      position.adjoints = 0;  // a backward part that an earlier process began has no results
      record(true, [&] { put_hashes(hashes); });
    }
    leave();
  }

  std::uint64_t records() const { return records_; }

 private:
  bool is_usable(const JournalRecord& record);
  const JournalEntry* entry_of(Kind kind, std::uint32_t number) const;
  Extent write(const Pieces& pieces);
  bool read(const Extent& extent, const Pieces& pieces);
  void drop_lasting(Kind kind);
  void commit(bool is_finished);

  Journal journal_;
  HeldTable table_;
  std::string operation_;
  std::string directory_;
  std::string path_;
  Where where_;
  bool is_exact_;  // states can be made again
  RunClock clock_;
  const JournalRecord* record_ = nullptr;
  JournalRecord again_;                // the one to begin again with
  std::vector<JournalEntry> lasting_;  // of all later records
  std::vector<JournalEntry> draft_;
  std::vector<Extent> own_;  // of the draft alone
  std::uint64_t records_ = 0;
  std::atomic<bool> is_in_use_ = true;
};

}  // namespace palimpsest
