#pragma once

#include <filesystem>
#include <string>
#include <string_view>

// The directory of a journal, as the file system has it. Errors name `operation`.

namespace palimpsest {

/// A file that is closed at the end.
class OpenFile {
 public:
  OpenFile(const std::string& path, int flags);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  /// Negative if it cannot be opened.
  int get() const { return number_; }
  int release();

 private:
  int number_;
};

/// The words of an error number.
std::string reason_of(int error);

/// Throws `FileError` if a relative path has no meaning, because the current directory is removed.
std::filesystem::path absolute_path(const std::string& path);

/// A path that does not depend on how it is written. Throws like `absolute_path`.
std::string normal_path(const std::string& path);

/// Makes a directory, and its name and those of its parents durable. Does nothing if it exists.
void make_directory(std::string_view operation, const std::string& directory);

/// Makes new and removed names of a directory durable.
void sync_directory(std::string_view operation, const std::string& directory);

/// A locked file of a directory. The lock ends with this object, and with the process.
class DirectoryLock {
 public:
  /// Throws `EnvironmentError` if another process or object has the lock, and `FileError`.
  DirectoryLock(std::string_view operation, const std::string& directory, const std::string& file);

 private:
  OpenFile file_;
};

}  // namespace palimpsest
