#pragma once

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace palimpsest {

/// A new directory that is removed with its contents at the end of this object's lifetime.
class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(const std::string& folder = "/tmp")
      : path_(folder + "/palimpsest-test-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no directory in " + folder);
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }
  /// Full paths of the directory's entries.
  std::vector<std::string> files() const {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      paths.push_back(entry.path().native());
    }
    return paths;
  }

 private:
  std::string path_;
};

/// A folder for files that tests write to the disk very often: in memory, where the system has such
/// a folder.
inline std::string quick_folder() {
  return std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : "/tmp";
}

}  // namespace palimpsest
