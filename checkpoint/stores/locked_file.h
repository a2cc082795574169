#pragma once

#include <string>

#include "autodiff/bytes.h"

namespace palimpsest {

/// An open file `palimpsest-<16 digits>.spill` that belongs to this process. It is locked (`flock`)
/// during this object's life and removed with it.
///
/// Before the file is made, files that killed runs left in the directory are removed. They have a
/// name of this form and this library's mark, or the beginning of it, belong to this user, and are
/// not locked. Several processes may do this at once. A file is removed only under its lock. A new
/// file that another process removes before its maker has locked it is made again under another
/// name. The lock must be visible to all users of the directory, so machines that share one over a
/// network must share its locks too.
class LockedFile {
 public:
  /// Throws `FileError` when no file can be made.
  explicit LockedFile(const std::string& directory);
  ~LockedFile();
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;

  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_; }
  /// True when another process has removed it.
  bool deleted() const;

  /// The bytes before this offset hold the mark.
  static constexpr Bytes first_free = 4096;

 private:
  std::string path_;
  int descriptor_;
};

}  // namespace palimpsest
