#include "autodiff/files.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "autodiff/error.h"

namespace palimpsest {
namespace {

[[noreturn]] void fail(std::string_view operation, const std::string& problem) {
  throw FileError("[" + std::string(operation) + "] " + problem);
}

/// A file beside the one that it is to replace. It goes, unless it does so.
class Unfinished {
 public:
  explicit Unfinished(const std::string& path) {
    static std::atomic<int> files = 0;
    path_ = path + "." + std::to_string(getpid()) + "-" + std::to_string(files++) + ".part";
  }
  ~Unfinished() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove(path_, ignored);
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

  const std::string& path() const { return path_; }
  std::error_code replace(const std::string& path) {
    std::error_code error;
    std::filesystem::rename(path_, path, error);
    if (!error) path_.clear();
    return error;
  }

 private:
  std::string path_;
};

void write_directly(const std::string& path, const std::string& named,
                    const std::function<void(std::ostream&)>& write, std::string_view operation) {
  std::ofstream file(path, std::ios::binary);
  if (!file) fail(operation, "cannot write " + named + "; check the folder and its rights");
  write(file);
  file.close();
  if (!file) fail(operation, "writing " + named + " failed; is the disk full?");
}

}  // namespace

std::string read_file(const std::string& path, std::string_view operation) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) fail(operation, path + " is a folder");
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(operation, "cannot open " + path + "; is the file there, and readable?");
  std::string content;
  std::array<char, 1 << 16> piece;
  do {
    file.read(piece.data(), piece.size());
    content.append(piece.data(), static_cast<std::size_t>(file.gcount()));
  } while (file);
  if (file.bad()) fail(operation, "reading " + path + " failed");
  return content;
}

void write_file(const std::string& path, const std::function<void(std::ostream&)>& write,
                std::string_view operation) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status before = fs::status(path, error);
  if (!fs::status_known(before)) fail(operation, "cannot write " + path + ": " + error.message());
  const bool is_there = fs::exists(before);
  if (is_there && !fs::is_regular_file(before)) {
    return write_directly(path, path, write, operation);
  }
  error.clear();
  // A link stays one, and what may not be written stays too.
  const std::string target = is_there ? fs::canonical(path, error).native() : path;
  if (error || (is_there && access(target.c_str(), W_OK) != 0)) {
    fail(operation, "cannot write " + path + "; check the folder and its rights");
  }
  Unfinished unfinished(target);
  write_directly(unfinished.path(), path, write, operation);
  if (is_there) fs::permissions(unfinished.path(), before.permissions(), error);
  if (!error) error = unfinished.replace(target);
  if (error) fail(operation, "cannot replace " + path + ": " + error.message());
}

void write_file(const std::string& path, std::string_view content, std::string_view operation) {
  write_file(path, [&](std::ostream& file) { file << content; }, operation);
}

}  // namespace palimpsest
