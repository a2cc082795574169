#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/programs/composed_program.h"

namespace palimpsest {

/// One way to run a program.
struct Cell {
  enum class Mode : std::uint8_t {
    lazy,
    eager,
    hybrid,
    program,
    evaluated,
    // By an `Execution`, twice the program for a batch of two parts:
    micro_batches,
    replicas,
    stages,
    devices
  };
  Mode mode = Mode::lazy;
  bool fuse = true;
  bool simplify = true;
  int threads = 1;
  MemoryHandling memory = MemoryHandling::minimal_peak;
  std::string planner = {};  ///< as `planner_named` knows it; empty: the one there is without
  /// Of the bytes that keeping everything takes; none: no budget.
  std::optional<double> share = {};
  std::optional<Precision> precision = {};  ///< other than recorded; not where gradients are values
};
/// Whether an `Execution` runs the program.
bool is_executed(Cell::Mode mode);
/// Cell number `index` of a program, at random.
Cell cell_of(std::uint64_t seed, std::uint32_t index);
std::string to_string(const Cell& cell);

/// Something that a program computes.
struct Result {
  std::string name;
  Tensor tensor;
};
/// The loss of a program and the gradients of its parameters, the same of its other loss, and what
/// its last step made. Some modes find the first of these only.
using Results = std::vector<Result>;
/// Computed node after node: nothing is planned, fused or simplified.
Results reference_of(const ProgramText& text);
/// The same in another precision.
Results reference_of(const ProgramText& text, const Precision& precision);

/// What `backward` found.
Results results_of(const Gradients& gradients, std::span<const Var> parameters);

/// The first of the results found that is not as expected, in words; empty when all are.
std::string difference(const Results& found, const Results& expected);

/// Runs the program in a cell and returns what is wrong: other bits than `expected`, or than the
/// reference in the precision of the cell, more bytes than predicted or allowed, a named budget
/// that does not suffice, an error that should not be.
std::optional<std::string> problem_in(const ProgramText& text, const Cell& cell,
                                      const Results& expected);

}  // namespace palimpsest
