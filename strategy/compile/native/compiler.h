#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <vector>

namespace palimpsest {

/// The system's C compiler, and the options with which it compiles native code.
struct Compiler {
  std::vector<std::string> command;  ///< program and options
  std::string identity;              ///< changes when the compiler or the options change
  std::string problem;               ///< why there is none; empty if there is one
};

/// The value of an environment variable; empty in a process with raised privileges.
std::string trusted_variable(const char* name);

/// The compiler named by the environment variable CC, or else cc, gcc or clang of the PATH. The
/// code gets the instructions of the kernels' level. Does not compute anything in the way that
/// `-ffast-math` permits.
Compiler find_compiler();

/// When a compilation runs and ends.
struct CompilePriority {
  bool idle = false;          ///< only uses processor time that nothing else wants
  std::stop_token stop = {};  ///< ends it early
  std::chrono::milliseconds most = std::chrono::seconds(60);  ///< ends it after this time
};

/// Compiles a C file to a shared library. No shell is involved. The library's folder is that of the
/// compiler's temporary files. Returns why it failed, or an empty text.
std::string compile_library(const Compiler& compiler, const std::string& source_path,
                            const std::string& library_path, const CompilePriority& priority);

}  // namespace palimpsest
