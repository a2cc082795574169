#pragma once

#include <string>
#include <variant>
#include <vector>

#include "autodiff/export.h"
#include "strategy/program.h"
#include "strategy/training/adam.h"
#include "strategy/training/sgd.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// A name in the exported file for a value of a program.
struct CName {
  std::string name;
  Var value;
};

/// An optimizer of the exported file. Its groups must be empty. The learning rate is an argument of
/// the exported function; that of the options is a macro.
using COptimizer = std::variant<std::monostate, SgdOptions, AdamOptions, AdamWOptions>;

struct ExportOptions {
  /// Most bytes that the exported function takes: parameters, results, optimizer state and arena.
  /// Other arguments and tables of constants do not count.
  Bytes memory_budget = unlimited;
  /// The exported function. Also the prefix of all other names, and the name of the files.
  std::string name = "program";
  /// Constants and parameters that the caller passes, in this order. Parameters that are not listed
  /// precede them. Other constants become tables in the file, with their recorded values.
  std::vector<CName> arguments = {};
  /// Names of results; without them they are `loss`, `output_1`, `gradient_of_` a parameter and so
  /// on.
  std::vector<CName> results = {};
  /// Updates the parameters in place instead of returning their gradients. Only for programs of
  /// gradients.
  COptimizer optimizer = {};
  /// As in `RunOptions`.
  PlannerPtr planner = nullptr;
};

/// A pointer that the exported function takes.
struct CPointer {
  std::string name;
  ValueType type;
  bool is_written;  ///< a result, or a parameter that is updated
};

/// A program as C source text, with the memory that it takes.
struct ExportedC {
  std::string name;
  std::string header;  ///< the text of `name`.h
  std::string source;  ///< the text of `name`.c
  /// In the order of the function's arguments. With an optimizer, a pointer to its state, if it has
  /// one, and the learning rate (`double`) follow.
  std::vector<CPointer> pointers;
  bool has_state = false;
  bool has_learning_rate = false;
  Bytes arena_bytes = 0;
  Bytes parameter_bytes = 0;
  Bytes result_bytes = 0;
  Bytes state_bytes = 0;
  Bytes constant_bytes = 0;  ///< of tables, which are read-only

  /// The bytes that the budget counts.
  Bytes total_bytes() const { return arena_bytes + parameter_bytes + result_bytes + state_bytes; }
};

/// Writes a program as one C99 file: forward part, backward part and, if requested, the update of
/// an optimizer, as one function. It uses no heap, thread or file, and only <math.h>,
/// <stdint.h> and <string.h> of the C library. All intermediate values lie in one static array, the
/// arena. The schedule is planned within the budget, so values are computed again where memory is
/// short.
/// docs/export-c.md lists the supported operations.
///
/// The results are those of the engine: the same bits for arithmetic on elements, integers and
/// moved elements, and equal up to rounding otherwise. They do not depend on the budget.
///
/// Throws `ArgumentError` for an operation that cannot be exported, naming it and its source line.
/// Likewise for names that are no C identifiers or occur twice, and for values of other programs.
/// Throws `DTypeError` for dtypes other than f32, f64, i32, i64 and bool. Throws `BudgetError` when
/// the budget is too small; it names the smallest feasible one. Nothing is written then.
ExportedC export_c(const Program& program, const ExportOptions& options = {},
                   Where where = Where::current());

/// Writes `name`.h and `name`.c into a folder, each by renaming a complete file. Throws
/// `FileError`.
void write_files(const ExportedC& exported, const std::string& folder);

}  // namespace palimpsest
