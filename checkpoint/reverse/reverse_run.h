#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "checkpoint/meter.h"
#include "checkpoint/reverse/chain_schedule.h"
#include "checkpoint/reverse/error_samples.h"
#include "checkpoint/reverse/journal.h"
#include "checkpoint/reverse/kept_states.h"
#include "checkpoint/reverse/reverse.h"
#include "checkpoint/reverse/reverse_plan.h"
#include "checkpoint/reverse/reverse_position.h"
#include "checkpoint/reverse/run_clock.h"
#include "checkpoint/reverse/state_hashes.h"
#include "checkpoint/stores/locked_file.h"

namespace palimpsest {

/// One run of a chain, from its first state or from a record of its journal, to the end or until it
/// is to stop.
class ReverseRun {
 public:
  /// `journal` is null if there is none.
  ReverseRun(const ReverseOptions& options, const Where& where, ReverseChain& chain,
             const ReversePlan& plan, SnapshotCodec* codec, Journal* journal,
             ReverseReport& report);

  /// Continues from a record. Returns false if it, or what it refers to, is damaged.
  bool continue_from(const JournalRecord& record);
  /// Begins with the current state.
  void begin();
  /// Returns false if the run was stopped.
  bool run();
  /// Adds what the run has taken so far to the report.
  void finish_report();

 private:
  using Phase = JournalPosition::Phase;
  /// Thrown to leave the run after its last record.
  struct Stopped {};
  static constexpr std::uint64_t none = JournalPosition::none;

  bool is_sweep() const { return position_.phase == Phase::sweep; }
  /// Whether all steps are reversed. A stop does not lose the result then.
  bool is_whole() const { return position_.phase == Phase::reversal && position_.left == 0; }
  std::uint64_t step_of(std::uint64_t unit) const;
  /// The end of the report. Returns true.
  bool finish();
  void sweep();
  void sweep_by_bytes();
  /// Writes the current state to disk if a piece of the chain begins with it; only by bytes.
  void begin_piece();
  void reverse_by_schedule();
  void reverse_by_bytes();
  void carry_out(const ChainAction& action);
  void advance_to(std::uint64_t state);
  void reverse_unit(std::uint64_t first);
  void restore(KeptState& kept, KeptStates::Tier tier);
  /// Makes a state that is damaged, in this process or another one of the group, from a kept state
  /// before it.
  void make_again(const KeptState& kept, bool is_damaged_here);
  void replay_schedule();
  void seed();
  bool is_last();
  /// How many states fit into so many bytes, if all are as large as the largest one so far.
  std::uint64_t fitting(Bytes bytes) const;
  Bytes room_left();
  bool make_room(Bytes bytes);
  /// Keeps the current state if it fits; for good, or in place of others.
  void keep_by_bytes(bool for_good);
  std::uint64_t split(std::uint64_t first, std::uint64_t last);

  /// A point at which the run may be interrupted.
  void pause() {
    const bool looks = options_.group != nullptr
                           ? --until_clock_ == 0
                           : always_looks_ || options_.stop.stop_requested() || clock_.has_ticked();
    if (looks) look_at_clock();
  }
  void look_at_clock();
  void report_progress();
  /// The number of calls that a schedule whose length is known makes.
  std::uint64_t calls_expected() const;
  void add_record();
  bool load_object(const JournalEntry& entry, StoredObject& object);

  const ReverseOptions& options_;
  Where where_;
  ReverseChain& chain_;
  const ReversePlan& plan_;
  Journal* journal_;
  ReverseReport& report_;
  Meter meter_;
  std::unique_ptr<LockedFile> spill_;
  std::unique_ptr<ExtentFile> spill_file_;
  ExtentFile* file_ = nullptr;
  std::optional<KeptStates> kept_;
  std::unique_ptr<ChainSchedule> schedule_;
  std::optional<StateHashes> hashes_;
  std::optional<ErrorSamples> samples_;
  JournalPosition position_;
  bool has_adjoint_ = false;
  bool is_memory_whole_ = true;  // no process of the group lacks one of the states in memory
  RunClock clock_;
  bool always_looks_;  // at the clock: a record follows each step
  // Processes of a group look together, which takes longer than a short step.
  std::uint64_t until_clock_ = 1;
  std::uint64_t pauses_ = 1;    // between two looks
  std::uint64_t expected_ = 0;  // calls of `advance` and `reverse`; 0 while unknown
};

}  // namespace palimpsest
