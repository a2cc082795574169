#pragma once

#include <memory>
#include <span>
#include <string>

#include "autodiff/bytes.h"
#include "strategy/compile/native/compiler.h"

namespace palimpsest {

/// A shared library with native code, in this process's memory. All programs with the same source
/// share it.
class NativeLibrary {
 public:
  /// `handle` is that of `dlopen`, and is closed at the end.
  NativeLibrary(void* handle, Bytes bytes) : handle_(handle), bytes_(bytes) {}
  ~NativeLibrary();
  NativeLibrary(const NativeLibrary&) = delete;
  NativeLibrary& operator=(const NativeLibrary&) = delete;

  /// The function of this name; null if there is none.
  void* find(const std::string& name) const;
  /// The function of this name. Throws `InternalError` if there is none.
  void* function(const std::string& name) const;
  Bytes bytes() const { return bytes_; }

 private:
  void* handle_;
  Bytes bytes_;
};

/// A library, or why there is none.
struct LoadedLibrary {
  std::shared_ptr<const NativeLibrary> library;
  std::string problem;
  double compile_seconds = 0;  ///< 0 for code that was compiled before
};

/// Finds the library for a C source in this process or in the cache on disk, or compiles it. A
/// library without one of the `functions` is not used and not kept. May be called by several
/// threads at a time.
LoadedLibrary load_library(const std::string& source, const CompilePriority& priority = {},
                           std::span<const std::string> functions = {});

/// Makes what this process keeps of libraries. A static object that uses them until its end calls
/// this first.
void prepare_libraries();

}  // namespace palimpsest
