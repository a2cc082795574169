#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "strategy/compile/native/native_library.h"
#include "strategy/compile/native/program_source.h"

namespace palimpsest {

/// The native code of a program. Immutable; any number of executors may share it.
class MachineCode {
 public:
  /// Carries out all instructions. `at` has the addresses of places. `step` runs an instruction
  /// that has no code here.
  using Run = void (*)(std::byte* const* at, const FusedKernel::Number* numbers,
                       const void* const* table, void (*step)(void* executor, std::uint32_t index),
                       void* executor);

  MachineCode(ProgramSource source, LoadedLibrary loaded);

  /// The code of the group that an instruction runs; null if it is interpreted.
  FusedKernel::Code group(std::size_t step) const { return groups_[step].code; }
  std::uint32_t first_entry(std::size_t step) const { return groups_[step].first_entry; }
  /// Null if the program is too long for one function.
  Run run() const { return run_; }
  /// True if `run` never calls `step`.
  bool is_complete() const { return is_complete_; }
  /// True if `run` carries out the program of `tape`, which may differ in attributes from the one
  /// that the code was made for.
  bool runs(const Tape& tape) const;
  /// True if the code is right for a program with these numbers.
  bool fits(std::span<const FusedKernel::Number> numbers) const;
  /// Fills in the addresses that the code needs. Some of them point into the tape.
  void fill_table(const Tape& tape, std::vector<const void*>& table) const;

  Bytes bytes() const { return loaded_.library->bytes(); }
  double compile_seconds() const { return loaded_.compile_seconds; }

 private:
  struct Group {
    FusedKernel::Code code = nullptr;
    std::uint32_t first_entry = 0;
  };
  LoadedLibrary loaded_;
  std::vector<Group> groups_;  // by step
  std::vector<GroupSource::Entry> table_;
  std::vector<GroupSource::Literal> literals_;
  std::vector<ProgramSource::Product> products_;
  Run run_ = nullptr;
  bool is_complete_ = false;
};

}  // namespace palimpsest
