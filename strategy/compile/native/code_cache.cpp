#include "strategy/compile/native/code_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

#include "autodiff/file_size_limit.h"
#include "checkpoint/stores/hash.h"
#include "strategy/compile/native/compiler.h"

namespace palimpsest {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view mark = "palimpsest code ";

/// True if `path` is a file or folder of this user, and only this user can write it.
bool is_private(const std::string& path, bool folder) {
  struct stat facts{};
  if (::lstat(path.c_str(), &facts) != 0) return false;
  if (folder ? !S_ISDIR(facts.st_mode) : !S_ISREG(facts.st_mode)) return false;
  return facts.st_uid == ::geteuid() && (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/// True if only this user and root can replace what lies in the folder.
bool has_safe_entries(const std::string& folder) {
  struct stat facts{};
  if (::stat(folder.c_str(), &facts) != 0) return false;
  const bool others_write = (facts.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  return (facts.st_uid == ::geteuid() || facts.st_uid == 0) &&
         (!others_write || (facts.st_mode & S_ISVTX) != 0);
}

/// Makes a folder and those above it that are missing, for this user only.
void make_private(const fs::path& folder) {
  std::error_code error;
  if (folder != folder.parent_path() && !fs::exists(folder, error)) {
    make_private(folder.parent_path());
    ::mkdir(folder.c_str(), 0700);
  }
}

/// The folder for later processes; empty if it cannot be made.
std::string kept_folder() {
  std::string base = trusted_variable("XDG_CACHE_HOME");
  if (base.empty() || base.front() != '/') {
    const std::string home = trusted_variable("HOME");
    if (home.empty() || home.front() != '/' || !has_safe_entries(home)) return {};
    base = home + "/.cache";
  }
  make_private(base);
  const std::string folder = base + "/palimpsest";
  if (!has_safe_entries(base)) return {};
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return {};
  const bool can_use = is_private(folder, true) && ::access(folder.c_str(), W_OK | X_OK) == 0;
  return can_use ? folder : std::string();
}

/// A folder that only this process uses, until its end. It is made when it is first needed.
class TemporaryFolder {
 public:
  TemporaryFolder() = default;
  ~TemporaryFolder() {
    std::error_code error;
    // A forked child leaves the folder to its parent.
    if (!path_.empty() && ::getpid() == process_) fs::remove_all(path_, error);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path() {
    const std::lock_guard lock(mutex_);
    if (process_ != ::getpid()) {  // a forked child makes its own
      process_ = ::getpid();
      path_.clear();
    }
    if (!path_.empty()) return path_;
    std::error_code error;
    const fs::path base = fs::temp_directory_path(error);
    std::string pattern = (error ? "/tmp" : base.string()) + "/palimpsest-XXXXXX";
    if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
    return path_;
  }

 private:
  std::mutex mutex_;
  std::string path_;
  pid_t process_ = ::getpid();
};

TemporaryFolder& temporary_folder() {
  static TemporaryFolder folder;
  return folder;
}

/// True for a key. Names that do not begin with one are the user's.
bool is_key(std::string_view name) {
  return name.size() == code_key_length &&
         name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// Nothing if the file has more bytes than the cache may have, or cannot be read.
std::optional<std::string> content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff bytes = file ? std::streamoff{file.tellg()} : -1;
  if (bytes < 0 || bytes > CodeCache::most_bytes) return {};
  std::string content(static_cast<std::size_t>(bytes), '\0');
  file.seekg(0);
  if (!file.read(content.data(), bytes)) return {};
  return content;
}

/// What follows a library in its file. A loader ignores it.
std::string trailer_of(std::string_view library) {
  const Hash128 hash = hash_bytes_128(std::as_bytes(std::span(library)));
  std::string text(mark);
  text.append(reinterpret_cast<const char*>(&hash), sizeof hash);
  return text;
}

}  // namespace

CodeCache::CodeCache() : folder_(kept_folder()), is_kept_(!folder_.empty()) {
  if (!is_kept_) folder_ = temporary_folder().path();
}

void CodeCache::prepare() { temporary_folder(); }

bool CodeCache::has(const std::string& key) const {
  const std::string path = path_of(key);
  if (!is_private(path, false)) return false;
  const std::string content = content_of(path).value_or(std::string());
  const std::size_t size = mark.size() + sizeof(Hash128);
  const bool is_whole =
      content.size() > size &&
      content.ends_with(trailer_of(std::string_view(content).substr(0, content.size() - size)));
  if (is_whole) {
    ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // it was used now
  } else {
    ::unlink(path.c_str());
  }
  return is_whole;
}

bool CodeCache::add(const std::string& key, const std::string& built) const {
  const std::optional<std::string> content = content_of(built);
  if (!content) return false;
  {
    const FileSizeScope no_signal;
    std::ofstream file(built, std::ios::binary | std::ios::app);
    file << trailer_of(*content);
    if (!file.flush()) return false;
  }
  if (::chmod(built.c_str(), 0700) != 0) return false;
  if (std::rename(built.c_str(), path_of(key).c_str()) != 0) return false;
  trim();
  return true;
}

void CodeCache::trim() const {
  struct Entry {
    fs::file_time_type used;
    std::int64_t bytes;
    fs::path path;
  };
  std::vector<Entry> entries;
  std::int64_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator file(folder_, error), end; !error && file != end;
       file.increment(error)) {
    const std::string name = file->path().filename().string();
    if (!is_key(std::string_view(name).substr(0, code_key_length))) continue;
    const std::string_view rest = std::string_view(name).substr(code_key_length);
    std::error_code unreadable;
    const fs::file_type type = file->symlink_status(unreadable).type();
    const auto used = file->last_write_time(unreadable);
    if (unreadable) continue;
    if (type == fs::file_type::directory && rest.starts_with('-')) {
      const bool is_old = fs::file_time_type::clock::now() - used > std::chrono::hours(24);
      if (is_old) fs::remove_all(file->path(), unreadable);  // of a process that was killed
    }
    if (type != fs::file_type::regular || rest != ".so") continue;
    const auto size = static_cast<std::int64_t>(file->file_size(unreadable));
    if (unreadable) continue;
    bytes += size;
    entries.push_back({used, size, file->path()});
  }
  std::ranges::sort(entries, {}, &Entry::used);
  for (const Entry& entry : entries) {
    if (bytes <= most_bytes) return;
    std::error_code unused;
    fs::remove(entry.path, unused);
    bytes -= entry.bytes;
  }
}

}  // namespace palimpsest
