#pragma once

#include <list>
#include <memory>
#include <vector>

#include "strategy/loops/step_program.h"

namespace palimpsest {

/// Programs of steps that are recorded one by one: a step that records what one before it recorded,
/// numbers aside, is run by the same program. Kept are 32 programs at most, and `most_cached` bytes
/// unless the last one takes more. For one thread at a time.
class RecordedPrograms {
 public:
  /// The programs run in `memory`, one at a time.
  RecordedPrograms(std::span<std::byte> memory, int threads) : memory_(memory), threads_(threads) {}

  /// A runner for what `tape` holds, valid until the next call. Throws `BudgetError` when no plan
  /// fits the memory.
  StepRunner& find_or_plan(const std::shared_ptr<Tape>& tape, const StepProgram::Wanted& wanted);

 private:
  struct Entry {
    std::vector<std::uint64_t> signature;
    StepProgram::Wanted wanted;
    std::unique_ptr<StepRunner> runner;
    Bytes bytes;
  };

  std::span<std::byte> memory_;
  int threads_;
  std::list<Entry> entries_;  // most recently used first
  std::vector<std::uint64_t> signature_;
};

}  // namespace palimpsest
