#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "strategy/compile/buffer_program.h"

namespace palimpsest {

/// Whether a loop, or a backward part of one, was recorded on the tape.
bool holds_loops(const Tape& tape);

/// The cache of programs that run on buffers, by tape, interface, budget, planner and number of
/// threads. It also keeps refusals of budgets. Use it from one thread at a time.
class BufferPrograms {
 public:
  /// The tapes that a program serves in addition to the one that it was compiled from.
  enum class Match : std::uint8_t {
    tape,        ///< none
    structure,   ///< those of the same structural fingerprint; a run takes their attributes
    attributes,  ///< those whose attributes are equal too, except random streams. Tapes with loops
                 ///< only serve themselves, since states have budgets of their own on each tape
  };

  /// Keeps at most `most` programs, and at most `most_bytes` unless the last one takes more.
  /// Programs that the current phase used may exceed `most_bytes`.
  BufferPrograms(Match match, std::size_t most, Bytes most_bytes)
      : match_(match), most_(most), most_bytes_(most_bytes) {}

  /// Finds the program, or compiles it as `compile_for_buffers` does.
  OrRefusal<BufferProgramPtr> find_or_compile(const std::shared_ptr<Tape>& tape,
                                              const BufferInterface& interface,
                                              const RunOptions& options, LoopStateBudgets& loops);
  /// The program compiled for exactly this budget, for the fewest threads. Null when there is none.
  BufferProgramPtr find_for(Bytes budget) const;

  /// Begins a phase of use. Drops refusals that the last phase did not use. Also drops programs
  /// with users' operations that the last eight phases did not use, since these may never recur.
  void begin_phase();
  /// Ends the phase. Drops the planners' proposals, which are kept for other budgets during a
  /// phase.
  void end_phase();

  /// Approximate bytes kept.
  Bytes bytes() const { return bytes_; }

 private:
  struct Entry {
    std::vector<std::uint64_t> fingerprint;
    BufferInterface interface;
    Bytes budget;
    std::string planner;
    int threads;
    std::shared_ptr<const Tape> tape;
    OrRefusal<BufferProgramPtr> outcome;
    Bytes bytes;
    bool comes_again;  ///< depends only on what is recorded
    std::uint64_t last_phase = 0;
  };
  /// Compiled programs, during a phase, of tapes that compute the same.
  struct InPhase {
    std::vector<std::uint64_t> fingerprint;
    std::shared_ptr<const Tape> tape;
    std::unique_ptr<ProgramCache> cache;
  };
  /// Null outside a phase.
  ProgramCache* cache_for(const std::shared_ptr<Tape>& tape, bool only_itself);
  bool serves(const Entry& entry, const std::shared_ptr<Tape>& tape, bool only_itself) const;
  void keep(Entry entry);
  void erase(std::list<Entry>::iterator entry);

  Match match_;
  std::size_t most_;
  Bytes most_bytes_;
  std::list<Entry> entries_;  // most recently used first
  bool is_in_phase_ = false;
  std::list<InPhase> phase_;                // programs of tapes, during a phase
  std::vector<std::uint64_t> fingerprint_;  // of the last tape searched for
  std::uint64_t phases_ = 0;
  Bytes bytes_ = 0;
};

}  // namespace palimpsest
