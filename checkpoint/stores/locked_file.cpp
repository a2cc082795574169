#include "checkpoint/stores/locked_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string_view>
#include <system_error>
#include <utility>

#include "autodiff/error.h"
#include "checkpoint/stores/transfer.h"

namespace palimpsest {
namespace {

constexpr std::string_view mark = "palimpsest spill file 1\n";
constexpr std::string_view prefix = "palimpsest-";
constexpr std::string_view suffix = ".spill";
constexpr std::size_t digits = 16;

/// Owns the descriptor of an open file and closes it.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

std::string new_name() {
  std::random_device random;
  const std::uint64_t number = std::uint64_t{random()} << 32 | random();
  char text[digits + 1];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return std::string(prefix) + text + std::string(suffix);
}

bool is_name(std::string_view name) {
  return name.size() == prefix.size() + digits + suffix.size() && name.starts_with(prefix) &&
         name.ends_with(suffix) &&
         name.substr(prefix.size(), digits).find_first_not_of("0123456789abcdef") == name.npos;
}

/// True when the file begins with the mark, or is a prefix of it.
bool has_mark(int file) {
  std::array<char, mark.size()> content;
  const ssize_t bytes = pread(file, content.data(), content.size(), 0);
  return bytes >= 0 && mark.starts_with({content.data(), static_cast<std::size_t>(bytes)});
}

/// True when `path` names the open file.
bool names(const std::string& path, int file) {
  struct stat named;
  struct stat open;
  return lstat(path.c_str(), &named) == 0 && fstat(file, &open) == 0 &&
         named.st_ino == open.st_ino && named.st_dev == open.st_dev;
}

bool lock(int file) { return flock(file, LOCK_EX | LOCK_NB) == 0; }

void remove_if_left_behind(const std::string& path) {
  // Non-blocking, because a pipe may have such a name.
  const Descriptor file(open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status;
  if (file.get() < 0 || fstat(file.get(), &status) != 0) return;
  if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || !lock(file.get())) return;
  // Checked under the lock, because another process may have removed it before.
  if (has_mark(file.get()) && names(path, file.get())) unlink(path.c_str());
}

void remove_left_behind(const std::filesystem::path& directory) {
  // Files that cannot be listed or removed stay; they do no harm.
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  for (const std::filesystem::directory_iterator end; !error && entry != end;
       entry.increment(error)) {
    if (is_name(entry->path().filename().native())) remove_if_left_behind(entry->path().native());
  }
}

[[noreturn]] void fail(const std::string& directory, int error) {
  std::string message = "[spill] cannot create a file in '" + directory + "': ";
  switch (error) {
    case ENOENT:
      message += "the directory does not exist; create it, or name another";
      break;
    case ENOTDIR:
      message += "it is not a directory; name a directory";
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      message += "it is not writable; change its permissions, or name another";
      break;
    default:
      message += std::generic_category().message(error) + "; name another directory";
  }
  throw FileError(message);
}

}  // namespace

LockedFile::LockedFile(const std::string& directory) {
  // A later change of the current directory must not matter.
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(directory, error);
  if (error || directory.empty()) fail(directory, ENOENT);
  remove_left_behind(absolute);
  while (true) {
    path_ = (absolute / new_name()).native();
    Descriptor file(open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (file.get() < 0) {
      if (errno == EEXIST || errno == EINTR) continue;
      fail(directory, errno);
    }
    if (!lock(file.get())) {
      if (errno == EWOULDBLOCK || errno == EINTR) continue;
      const int reason = errno;
      unlink(path_.c_str());
      fail(directory, reason);
    }
    if (!names(path_, file.get())) continue;
    const iovec content{const_cast<char*>(mark.data()), mark.size()};
    if (const Transfer written = write_at(file.get(), 0, {&content, 1}); written.error != 0) {
      unlink(path_.c_str());
      fail(directory, written.error);
    }
    descriptor_ = file.release();
    return;
  }
}

LockedFile::~LockedFile() {
  if (names(path_, descriptor_)) unlink(path_.c_str());
  close(descriptor_);
}

bool LockedFile::deleted() const {
  struct stat status;
  return fstat(descriptor_, &status) != 0 || status.st_nlink == 0;
}

}  // namespace palimpsest
