#pragma once

#include <sys/stat.h>

#include <stdexcept>
#include <string>

#include "tests/temporary_directory.h"

namespace palimpsest {

/// A pipe with a name, to which nothing ever writes. Opening it for reading would wait for ever.
class NamedPipe {
 public:
  NamedPipe() : path_(directory_.path() + "/pipe") {
    if (mkfifo(path_.c_str(), 0600) != 0) throw std::runtime_error("no pipe at " + path_);
  }

  const std::string& path() const { return path_; }

 private:
  TemporaryDirectory directory_;
  std::string path_;
};

}  // namespace palimpsest
