#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/programs/program_results.h"

namespace palimpsest {

/// One way to run a program.
struct Cell {
  enum class Mode : std::uint8_t {
    lazy,
    eager,
    hybrid,
    program,
    evaluated,
    // By an `Execution`, with the program as the loss of each of two parts of a batch:
    micro_batches,
    replicas,
    stages,
    devices
  };
  Mode mode = Mode::lazy;
  bool fuse = true;
  bool simplify = true;
  int threads = 1;
  AllocationPolicy memory = AllocationPolicy::minimal_peak;
  std::string planner = {};  ///< a name for `planner_named`; empty: the default planner
  /// Budget relative to the keep-all peak; none: no budget.
  std::optional<double> share = {};
  std::optional<Precision> precision = {};  ///< unless as recorded; not where gradients are values
  /// The last value and the other loss are auxiliary outputs, and a tensor takes the last value
  /// after the run. Not where gradients are values, and not in stages and on devices.
  bool outputs = false;
  bool native = false;  ///< fused groups are compiled at once; otherwise all are interpreted
  /// The program also runs with journals of its loops. It ends in the middle, twice, and continues.
  bool resumes = false;
  /// Planners assume slow arithmetic: loops keep what values they can.
  bool slow_arithmetic = false;
  /// Then the parameters change, and the losses are differentiated again. Only where gradients are
  /// those of a tape that is lazy, eager or hybrid.
  bool changes = false;
  /// Micro-batches and replicas compute as hybrid tapes do.
  bool hybrid_parts = false;
  /// An `Execution` cuts a batch of three examples, so that its parts differ in size. Not where the
  /// loss or running statistics are means, whose bits depend on the sizes.
  bool uneven = false;
};
/// Whether an `Execution` runs the program.
bool is_executed(Cell::Mode mode);
/// Whether a program can be a model in a mode. It needs parameters, and it must not draw random
/// numbers, which would differ between parts of a batch and between runs. Stages and devices refuse
/// running statistics, to read values while they record, and second derivatives of loops whose
/// steps differ.
bool is_model(const ProgramText& text, Cell::Mode mode);
/// Whether cell number `index` of a program is planned within budgets.
bool has_time_to_plan(std::uint64_t seed, std::uint32_t index);
/// Random cell number `index` of a program.
Cell cell_of(std::uint64_t seed, std::uint32_t index);
std::string to_string(const Cell& cell);

/// How a cell runs a program, without a budget.
RunOptions options_of(const Cell& cell);
/// Likewise, by an `Execution` with these options.
ExecutionStrategy strategy_of(const Cell& cell, const RunOptions& options);

/// Keeps the code that cells compile in a folder for temporary files, where later runs find it.
/// Does nothing if `XDG_CACHE_HOME` names a folder.
void keep_native_code();

/// How the losses of both parts of a batch combine, each of which is the program's. A mean over
/// counted targets becomes that of both parts, so only the mean of equal parts is the program's.
LossReduction reduction_of(const ProgramText& text);

/// Runs the program in a cell and returns the problem, if there is one. Problems are bits that
/// differ from `expected` or from the reference in the cell's precision, more bytes than predicted
/// or allowed, a named budget that does not suffice, and unexpected errors.
std::optional<std::string> problem_in(const ProgramText& text, const Cell& cell,
                                      const Results& expected);

}  // namespace palimpsest
