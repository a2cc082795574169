#pragma once

#include <csignal>
#include <string>

namespace palimpsest {

/// While one exists, writing beyond the limit on the size of files fails on this thread with EFBIG.
/// Otherwise the system sends SIGXFSZ, which ends the process.
class FileSizeScope {
 public:
  FileSizeScope();
  ~FileSizeScope();
  FileSizeScope(const FileSizeScope&) = delete;
  FileSizeScope& operator=(const FileSizeScope&) = delete;

 private:
  sigset_t before_;
  bool was_pending_;
};

/// Names the limit on the size of files for an error message, as in "; files may have 4.0 KiB, see
/// `ulimit -f`". Empty if there is none.
std::string file_size_hint();

}  // namespace palimpsest
