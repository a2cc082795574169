#pragma once

#include <string>
#include <vector>

#include "strategy/export/export_c.h"

namespace palimpsest {

/// The command of a C compiler; empty if there is none.
std::string c_compiler();

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

}  // namespace palimpsest
