#pragma once

#include <iosfwd>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>

#include "strategy/base/dump_level.h"
#include "strategy/compile/compiled_program.h"
#include "strategy/compile/lowered_forms.h"
#include "strategy/compile/program_spec.h"

namespace palimpsest {

/// The level that the environment variable `PALIMPSEST_DUMP` names; empty if it is not set. Throws
/// `ArgumentError` for an unknown level.
std::optional<DumpLevel> dump_level_of_environment();
/// Writes to the file that `PALIMPSEST_DUMP_FILE` names, or else to stderr.
void write_dump(std::string_view text);

/// Prints what each pass of a compilation did, with the user's source lines.
class CompileLog {
 public:
  explicit CompileLog(DumpLevel level) : level_(level) {}

  /// The log of `dump_level_of_environment`; null without a level.
  static std::unique_ptr<CompileLog> of_environment();

  void begin(const Tape& tape, const ProgramSpec& spec, const RunOptions& options);
  void loop_state_budgets(const std::string& summary);
  void common_subexpressions(const Tape& tape, const Simplification& simplification);
  void cache_budget(const RunOptions& options, Bytes chosen);
  void lowered(const Tape& tape, const Lowered& lowered, GraphForm form);
  void planned(const Tape& tape, const Lowered& lowered, const Plan& plan);
  void free_memory(Bytes budget);
  void emitted(const Tape& tape, const Instructions& instructions);
  void refused(const BudgetError& refusal);

  /// Writes everything to a stream and clears the log.
  void write(std::ostream& stream);
  /// Writes everything as `write_dump` does, and clears the log.
  void write_where_environment_says();

 private:
  std::ostream& line(std::string_view pass);
  bool shows_plan() const { return level_ == DumpLevel::plan || level_ == DumpLevel::all; }
  bool shows_instructions() const {
    return level_ == DumpLevel::instructions || level_ == DumpLevel::all;
  }

  DumpLevel level_;
  std::ostringstream text_;
};

}  // namespace palimpsest
