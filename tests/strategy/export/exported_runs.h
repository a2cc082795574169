#pragma once

#include <string>
#include <vector>

#include "strategy/export/export_c.h"

namespace palimpsest {

/// The command of a C compiler; empty if there is none.
std::string c_compiler();

/// A C compiler and a level of optimization.
struct CBuild {
  std::string compiler;
  std::string level;
};
/// GCC, also version 12 where another is the default, and Clang: those that are installed, each at
/// five levels.
const std::vector<CBuild>& c_builds();

/// An exported program, and what is passed to its function.
struct CRun {
  ExportedC exported;
  /// By pointer; results may be undefined tensors.
  std::vector<Tensor> tensors;
  double learning_rate = 0;
  int calls = 1;
};

struct CResult {
  int status = 0;
  std::vector<Tensor> tensors;  ///< by pointer, after the last call
};

/// Compiles all exported programs into one executable, with warnings as errors, and runs it once.
/// Their names must differ. Throws `std::runtime_error` with the compiler's messages, or when the
/// executable fails.
std::vector<CResult> run_in_c(const std::vector<CRun>& runs, const std::string& flags = "-O0");
/// Likewise, by a build that compiles each exported file by itself, as users do. In one file, GCC
/// sees that each function is called once, and optimizes less.
std::vector<CResult> run_in_c(const std::vector<CRun>& runs, const CBuild& build);

}  // namespace palimpsest
