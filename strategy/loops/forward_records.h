#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "strategy/loops/advance.h"
#include "strategy/loops/loop_journal.h"

namespace palimpsest {

/// The journal of a loop's forward part during one run: continues from its last record, and adds
/// records.
class ForwardRecords {
 public:
  /// The objects that the forward part works on.
  struct Part {
    const Loop& loop;
    const KernelCall& call;
    LoopSteps& steps;
    Advance& advance;
    HeldStates* held;                    ///< null if no states are held
    std::vector<std::uint64_t>* hashes;  ///< of states; null without `LoopOptions::check`
    const Addresses& first;
    const Addresses& result;  ///< the last state
    const Parts& outputs;
    Addresses blocks[2];  ///< for states that are made again
  };
  /// Opens the journal. Throws as `Journal`.
  explicit ForwardRecords(const Part& part);
  ForwardRecords(const ForwardRecords&) = delete;
  ForwardRecords& operator=(const ForwardRecords&) = delete;

  /// False if another part of the loop uses the journal: then there are no records.
  bool is_open() const { return journal_ != nullptr; }
  /// Continues from the record that was found. Returns whether the forward part had ended; then the
  /// results are there.
  bool begin();
  /// The forward part had ended, but the journal does not have its results, because no record was
  /// due before the backward part began. All steps run again, without held states.
  bool repeats() const { return repeats_; }
  /// Number of actions of the schedule that are done.
  std::uint64_t actions() const { return at().actions; }
  void action_done() { ++at().actions; }
  /// Number of steps of a loop of unknown length that had ended.
  std::uint64_t count() const { return at().steps; }
  /// Adds a record if the run is to stop.
  void stop();
  /// The forward part has ended, after so many steps.
  void end(std::uint64_t count);
  /// Hands the journal over to the backward part.
  void hand_over(LoopHandover& handover);
  /// Adds to the report of the run.
  void note(LoopCounts& counts) const;

 private:
  LoopPosition& at() const { return journal_->position; }
  std::uint64_t first_step() const;
  void make(std::uint32_t from, const Addresses& state, std::uint32_t step, const Addresses& to);
  void pause(std::uint32_t step);
  void record();
  void put_held();
  void put_hashes();
  void put_results();

  Part part_;
  std::shared_ptr<LoopJournal> journal_;
  std::uint64_t records_before_ = 0;
  bool has_states_ = true;  // they are in memory
  bool repeats_ = false;
};

/// Runs steps `from`, … of a loop until state `step` is in `to`. `blocks` are for states between.
void run_steps(const Loop& loop, LoopSteps& steps, const Addresses (&blocks)[2], std::uint32_t from,
               const Addresses& state, std::uint32_t step, const Addresses& to,
               const Parts* outputs);

}  // namespace palimpsest
