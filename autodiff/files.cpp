#include "autodiff/files.h"

#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <system_error>

#include "autodiff/error.h"
#include "autodiff/file_size_limit.h"

namespace palimpsest {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(std::string_view operation, const std::string& problem) {
  throw FileError("[" + std::string(operation) + "] " + problem);
}

/// A temporary file that will replace another file in its folder. The destructor removes it
/// otherwise.
class Unfinished {
 public:
  explicit Unfinished(const std::string& path) {
    std::random_device random;
    path_ = path + "." + std::to_string(random()) + std::to_string(random()) + ".part";
  }
  ~Unfinished() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove(path_, ignored);
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

  const std::string& path() const { return path_; }
  std::error_code replace(const std::string& path) {
    std::error_code error;
    fs::rename(path_, path, error);
    if (!error) path_.clear();
    return error;
  }

 private:
  std::string path_;
};

/// Writes the file at `path`, which errors call `named`. Sets its permissions to `rights` if given.
void write_to(const std::string& path, const std::string& named,
              const std::function<void(std::ostream&)>& write, std::string_view operation,
              const std::optional<fs::perms>& rights = {}) {
  const FileSizeScope no_signal;
  std::ofstream file(path, std::ios::binary);
  if (!file) fail(operation, "cannot write " + named + "; check the folder and its permissions");
  std::error_code error;
  if (rights) fs::permissions(path, *rights, error);
  if (error)
    fail(operation, "cannot write " + named + ": " + error.message() + "; write to another folder");
  write(file);
  file.close();
  if (!file)
    fail(operation, "writing " + named + " failed; free disk space, or write to another folder" +
                        file_size_hint());
}

/// True if the file can be replaced by renaming another file. This is not so for the system's names
/// of open files and for dangling links. /dev/shm is a folder like any other.
bool is_replaceable(const std::string& path, const fs::file_status& status) {
  const bool is_device = path.starts_with("/dev/") && !path.starts_with("/dev/shm/");
  if (is_device || path.starts_with("/proc/")) return false;
  std::error_code ignored;
  if (!fs::exists(status)) return !fs::is_symlink(fs::symlink_status(path, ignored));
  return fs::is_regular_file(status);
}

bool may_be_written(const std::string& path) { return access(path.c_str(), W_OK) == 0; }

}  // namespace

void require_regular_file(const std::string& path, std::string_view operation) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    fail(operation, "cannot open " + path + "; check that the file exists and is readable");
  }
  if (fs::is_directory(status)) fail(operation, path + " is a folder; name a file");
  if (!fs::is_regular_file(status)) {
    fail(operation, path + " is not a regular file; copy its content to one");
  }
}

std::string read_file(const std::string& path, std::string_view operation) {
  require_regular_file(path, operation);
  std::ifstream file(path, std::ios::binary);
  if (!file)
    fail(operation, "cannot open " + path + "; check that the file exists and is readable");
  std::string content;
  std::array<char, 1 << 16> piece;
  do {
    file.read(piece.data(), piece.size());
    content.append(piece.data(), static_cast<std::size_t>(file.gcount()));
  } while (file);
  if (file.bad()) fail(operation, "reading " + path + " failed; check the disk");
  return content;
}

void write_file(const std::string& path, const std::function<void(std::ostream&)>& write,
                std::string_view operation) {
  std::error_code error;
  const fs::file_status before = fs::status(path, error);
  if (!fs::status_known(before))
    fail(operation, "cannot write " + path + ": " + error.message() + "; name another file");
  error.clear();
  const bool is_there = fs::exists(before);
  if (!is_replaceable(path, before)) return write_to(path, path, write, operation);
  const std::string target = is_there ? fs::canonical(path, error).native() : path;
  if (error || (is_there && !may_be_written(target))) {
    fail(operation, "cannot write " + path + "; check its permissions");
  }
  const fs::path folder = fs::path(target).parent_path();
  if (is_there && !may_be_written(folder.empty() ? "." : folder.native())) {
    return write_to(path, path, write, operation);
  }
  Unfinished unfinished(target);
  write_to(unfinished.path(), path, write, operation,
           is_there ? std::optional(before.permissions()) : std::nullopt);
  error = unfinished.replace(target);
  if (error == std::errc::device_or_resource_busy) return write_to(path, path, write, operation);
  if (error)
    fail(operation, "cannot replace " + path + ": " + error.message() + "; name another file");
}

void write_file(const std::string& path, std::string_view content, std::string_view operation) {
  write_file(path, [&](std::ostream& file) { file << content; }, operation);
}

}  // namespace palimpsest
