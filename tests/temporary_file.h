#pragma once

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

namespace palimpsest {

/// A path that nothing else uses. The file is removed at the end of this object's lifetime.
class TemporaryFile {
 public:
  TemporaryFile() : path_("/tmp/palimpsest-test-" + std::to_string(getpid())) {}
  ~TemporaryFile() { std::remove(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& path() const { return path_; }
  void write(const std::string& bytes) const {
    std::remove(path_.c_str());  // some file systems write replaced contents to the disk at once
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  std::string read() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::string path_;
};

}  // namespace palimpsest
