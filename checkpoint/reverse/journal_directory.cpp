#include "checkpoint/reverse/journal_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "autodiff/error.h"

namespace palimpsest {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_with_directory(std::string_view operation, const std::string& problem) {
  throw FileError("[" + std::string(operation) + "] " + problem);
}

}  // namespace

OpenFile::OpenFile(const std::string& path, int flags)
    : number_(open(path.c_str(), flags | O_CLOEXEC, 0600)) {}

OpenFile::~OpenFile() {
  if (number_ >= 0) close(number_);
}

int OpenFile::release() { return std::exchange(number_, -1); }

std::string reason_of(int error) { return std::generic_category().message(error); }

fs::path absolute_path(const std::string& path) {
  std::error_code error;
  fs::path absolute = fs::absolute(path, error);
  if (!error) return absolute;
  throw FileError("[files] '" + path +
                  "' cannot be found from the current directory: " + error.message() +
                  "; give an absolute path, or change to a directory that exists");
}

std::string normal_path(const std::string& path) {
  const fs::path normal = absolute_path(path).lexically_normal();
  return (normal.has_filename() ? normal : normal.parent_path()).native();
}

void sync_directory(std::string_view operation, const std::string& directory) {
  const OpenFile file(directory, O_RDONLY | O_DIRECTORY);
  // EINVAL: the file system has no such operation.
  if (file.get() >= 0 && (fsync(file.get()) == 0 || errno == EINVAL)) return;
  fail_with_directory(operation, "the directory '" + directory +
                                     "' cannot be written to the disk: " + reason_of(errno) +
                                     "; check the disk, and run again to continue");
}

void make_directory(std::string_view operation, const std::string& directory) {
  std::error_code error;
  std::vector<fs::path> changed;
  for (fs::path path(directory); !path.empty() && !fs::exists(path, error);) {
    path = path.parent_path();
    changed.push_back(path);
  }
  // The lock tells why a directory cannot be used.
  if (!fs::create_directories(directory, error)) return;
  for (const fs::path& path : changed) sync_directory(operation, path.native());
}

DirectoryLock::DirectoryLock(std::string_view operation, const std::string& directory,
                             const std::string& file)
    : file_(directory + "/" + file, O_RDWR | O_CREAT) {
  if (file_.get() < 0) {
    fail_with_directory(operation, "'" + directory + "' cannot be used for a journal: " +
                                       reason_of(errno) + "; name a directory that is writable");
  }
  if (flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    throw EnvironmentError("[" + std::string(operation) +
                           "] another process or driver uses the journal in '" + directory +
                           "'; wait for it, or name another directory");
  }
}

}  // namespace palimpsest
