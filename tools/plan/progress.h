#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

namespace palimpsest::tool {

/// One line about current work. Shown on stderr if that is a terminal, and erased at the end.
class Progress {
 public:
  Progress() = default;
  ~Progress() { show(""); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(const std::string& text) const {
    if (terminal_) std::fprintf(stderr, "\r\033[K%s", text.c_str());
  }

 private:
  bool terminal_ = isatty(STDERR_FILENO) == 1;
};

}  // namespace palimpsest::tool
