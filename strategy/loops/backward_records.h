#pragma once

#include <memory>
#include <vector>

#include "strategy/loops/forward_records.h"
#include "strategy/loops/loop_adjoints.h"

namespace palimpsest {

/// The hash of the adjoints that are given to a backward part of so many steps, and of which ones
/// are requested.
std::uint64_t hash_of_adjoints(const LoopGradient& gradient, const LoopAdjoints& adjoints,
                               std::uint32_t steps);

/// The journal of a loop's backward part during one run. It continues the journal of the forward
/// part, if that left one for this part alone; otherwise it has one of its own.
class BackwardRecords {
 public:
  /// The objects that the backward part works on.
  struct Part {
    const LoopGradient& gradient;
    const KernelCall& call;
    LoopSteps& steps;
    std::uint32_t count;  ///< of steps
    Advance& advance;
    HeldStates& held;
    LoopAdjoints& adjoints;
    Bytes room;                          ///< for held states
    Bytes share;                         ///< the step budget
    std::vector<std::uint64_t>* hashes;  ///< of states; null without `LoopOptions::check`
    const Addresses& first;
    Addresses blocks[2];  ///< for states that are made again
  };
  /// `given` is the journal that the forward part left, or null. Throws as `Journal`.
  BackwardRecords(const Part& part, std::shared_ptr<LoopJournal> given);
  BackwardRecords(const BackwardRecords&) = delete;
  BackwardRecords& operator=(const BackwardRecords&) = delete;

  /// False if the same run uses the journal, because it runs this part again: then there are no
  /// records.
  bool is_open() const { return journal_ != nullptr; }
  /// Whether it is that of the forward part.
  bool is_given() const { return is_given_; }
  /// Continues from the record that was found, if there is one. `are_given`: the forward part has
  /// left its states. Returns whether the backward part had ended; then its results are there.
  bool begin(bool are_given);
  /// Whether it continues from a record of the backward part.
  bool is_resumed() const { return is_resumed_; }
  /// Whether it continues while it chooses states, and how many choices were made.
  bool is_in_sweep() const { return at().phase == LoopPosition::Phase::sweep; }
  std::uint64_t actions() const { return at().actions; }

  void choice_done() { ++at().actions; }
  /// The choices are made: the reversal begins.
  void begin_reversal() {
    at().phase = LoopPosition::Phase::reversal;
    at().actions = 0;
  }
  /// So many actions of the schedule are done, because the forward part did them.
  void skip(std::uint64_t actions) { at().actions = actions; }
  void action_done(const ChainAction& action);
  /// Adds a record if the run is to stop.
  void stop();
  /// All results are made.
  void end();
  void note(LoopCounts& counts) const;

 private:
  LoopPosition& at() const { return journal_->position; }
  std::vector<std::string> own_identity() const;
  void load();
  void make(std::uint32_t from, const Addresses& state, std::uint32_t step, const Addresses& to);
  LoopJournal::Pieces results() const;
  void pause();
  void record();
  void put_hashes();

  Part part_;
  const Loop& loop_;
  std::shared_ptr<LoopJournal> journal_;
  bool is_given_;
  bool is_resumed_ = false;
  bool has_current_ = true;
  std::uint64_t records_before_ = 0;
};

}  // namespace palimpsest
