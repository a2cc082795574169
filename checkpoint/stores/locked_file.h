#pragma once

#include <string>

#include "autodiff/bytes.h"

namespace palimpsest {

/// An open file `palimpsest-<16 digits>.spill` of this process's own, locked (`flock`) while this
/// lives and removed with it.
///
/// Before it is made, those in the directory are removed that a run left behind that could not do
/// so itself. They have a name of this form and this library's mark, or the beginning of it, belong
/// to this user, and nobody holds their lock. Processes may do all this at once: a file is removed
/// only under its lock, and one that is taken for left behind before its maker has locked it is
/// made again under another name. The lock must reach whoever uses the directory, so machines that
/// share one over a network must share its locks too.
class LockedFile {
 public:
  /// Throws `FileError` where no file can be made.
  explicit LockedFile(const std::string& directory);
  ~LockedFile();
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;

  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_; }
  /// True when somebody has removed it.
  bool deleted() const;

  /// What lies before this is the mark.
  static constexpr Bytes first_free = 4096;

 private:
  std::string path_;
  int descriptor_;
};

}  // namespace palimpsest
