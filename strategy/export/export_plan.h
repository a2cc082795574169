#pragma once

#include <memory>
#include <vector>

#include "strategy/compile/compiled_program.h"
#include "strategy/export/export_c.h"
#include "strategy/export/export_tape.h"
#include "strategy/program_parts.h"

namespace palimpsest {

/// The instructions of an exported program, planned in what parameters, results and optimizer state
/// leave of the budget.
class ExportPlan {
 public:
  /// `fixed` holds the bytes of everything but the arena. With `updates`, gradients stay in the
  /// arena; otherwise results are written to memory of the caller. Throws as `export_c`.
  ExportPlan(const Program& program, const ProgramParts& parts, const ExportOptions& options,
             bool updates, const ExportedC& fixed);

  const Tape& tape() const { return tape_.tape(); }
  const Instructions& instructions() const { return *compiled_->instructions; }
  /// By output of the program: its place at the end.
  Instructions::Place place(std::size_t output) const;

 private:
  std::vector<ValueId> targets_;  // by output
  ExportTape tape_;
  std::shared_ptr<const CompiledProgram> compiled_;
};

}  // namespace palimpsest
