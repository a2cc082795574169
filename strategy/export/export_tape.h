#pragma once

#include <deque>
#include <map>
#include <memory>
#include <span>

#include "autodiff/var.h"

namespace palimpsest {

/// A copy of a program's tape, for planning. Its operations need as much scratch as in C. Their
/// outputs take over inputs where the C functions permit that. Nodes and values have the same
/// numbers as on the tape of the program. Leaves have no values.
class ExportTape {
 public:
  /// Throws `ArgumentError` and `DTypeError` for what a target needs but C cannot express.
  ExportTape(const Tape& program, std::span<const ValueId> targets);

  Tape& tape() { return *tape_; }
  const Tape& tape() const { return *tape_; }
  /// Records a copy of a value, in memory of its own.
  ValueId record_copy(ValueId value);

 private:
  const Operation& operation_in_c(const Operation& operation);

  std::deque<Operation> operations_;
  std::map<const Operation*, const Operation*> known_;
  std::unique_ptr<Tape> tape_;  // destroyed before its operations
};

}  // namespace palimpsest
